//! A planted fault, as its file says.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;

/// What is planted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The name of its file.
    pub(crate) name: String,
    /// What is wrong then, in a sentence.
    pub(crate) what: String,
    /// What found it when it was written. Only for people.
    pub(crate) finds: String,
    pub(crate) edits: Vec<Edit>,
}

/// A text of a file and what it is replaced by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    /// From the root of the workspace.
    pub(crate) file: String,
    /// Stands there exactly once.
    pub(crate) find: String,
    pub(crate) put: String,
}

/// All faults of a folder, in the order of their names.
pub(crate) fn read_all(folder: &Path) -> anyhow::Result<Vec<Fault>> {
    let mut faults = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path)?;
            faults.push(Fault::read(&name, &text).with_context(|| path.display().to_string())?);
        }
    }
    faults.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(faults)
}

impl Fault {
    /// Reads a file's text.
    fn read(name: &str, text: &str) -> anyhow::Result<Self> {
        let table: toml::Table = text.parse()?;
        let edits = table.get("edit").and_then(toml::Value::as_array).context("`[[edit]]` is missing")?;
        let edits = edits.iter().map(|edit| {
            let edit = edit.as_table().context("`[[edit]]` is no table")?;
            Ok(Edit {
                file: text_of(edit, "file")?,
                find: text_of(edit, "find")?,
                put: text_of(edit, "put")?,
            })
        });
        let fault = Self {
            name: name.to_owned(),
            what: text_of(&table, "what")?,
            finds: text_of(&table, "finds")?,
            edits: edits.collect::<anyhow::Result<_>>()?,
        };
        anyhow::ensure!(!fault.edits.is_empty(), "there is nothing to change");
        Ok(fault)
    }

    /// The files that it changes, with their new texts. An error if a text is not there exactly once.
    pub(crate) fn changed(
        &self,
        read: impl Fn(&str) -> anyhow::Result<String>,
    ) -> anyhow::Result<BTreeMap<String, String>> {
        let mut files: BTreeMap<String, String> = BTreeMap::new();
        for Edit { file, find, put } in &self.edits {
            let text = match files.get(file) {
                Some(text) => text.clone(),
                None => read(file).with_context(|| file.clone())?,
            };
            let count = text.matches(find.as_str()).count();
            let name = &self.name;
            anyhow::ensure!(count == 1, "{name}: this stands in {file} {count} times, not once:\n{find}");
            files.insert(file.clone(), text.replace(find, put));
        }
        Ok(files)
    }
}

fn text_of(table: &toml::Table, name: &str) -> anyhow::Result<String> {
    let value = table.get(name).and_then(toml::Value::as_str);
    value.map(str::to_owned).with_context(|| format!("`{name}` is missing or no text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "what = 'w'\nfinds = 'f'\n[[edit]]\nfile = 'a.rs'\nfind = '''\n  old'''\nput = 'new'\n";

    #[test]
    fn a_fault_changes_what_it_names() -> anyhow::Result<()> {
        let fault = Fault::read("name", TEXT)?;
        let files = fault.changed(|_| Ok("one\n  old\n".to_owned()))?;
        assert_eq!(files["a.rs"], "one\nnew\n");
        Ok(())
    }

    #[test]
    fn what_stands_twice_or_not_at_all_does_not_apply() -> anyhow::Result<()> {
        let fault = Fault::read("name", TEXT)?;
        assert!(fault.changed(|_| Ok("  old  old".to_owned())).is_err());
        assert!(fault.changed(|_| Ok("nothing".to_owned())).is_err());
        Ok(())
    }

    #[test]
    fn a_fault_without_a_sentence_is_none() {
        assert!(Fault::read("name", "finds = 'f'\nedit = []").is_err());
        assert!(Fault::read("name", "what = 'w'\nfinds = 'f'\nedit = []").is_err());
    }
}
