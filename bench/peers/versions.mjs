// Prints the version of an installed package.
import { readFileSync } from 'node:fs';
const path = new URL(`node_modules/${process.argv[2]}/package.json`, import.meta.url);
console.log(JSON.parse(readFileSync(path, 'utf8')).version);
