#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tagwerk_fuzz::lines(data));
