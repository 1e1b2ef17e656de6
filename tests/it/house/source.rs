//! Reads Rust source: which paths a file names, and which types it makes. Parsed, so that no spelling of a `use` hides.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// The crate's own name, by which `main.rs` calls it.
const CRATE: &str = "portolan";
/// Names that may occur more than once: each module has its own `Error`.
const REPEATED_TYPES: [&str; 2] = ["Error", "Result"];

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// A room of this crate. `*` is the crate's root itself: a glob or a rename of it would hide every arrow.
    Room(String),
    /// Anything else, by its first name: a crate, or something that is imported.
    Outside(String),
}

/// What is found in one file.
#[derive(Debug, Default)]
pub struct SourceFacts {
    /// Each target and the line that names it.
    pub targets: BTreeSet<(Target, usize)>,
    pub types: Vec<TypeName>,
    /// Every identifier that occurs, in macros as well.
    pub identifiers: BTreeSet<String>,
}

/// A struct, enum, union, trait or type alias.
#[derive(Debug)]
pub struct TypeName {
    pub name: String,
    pub line: usize,
}

/// Reads a file that is this module: `["web", "routes"]` for `src/web/routes.rs`, nothing for `lib.rs` and `main.rs`.
pub fn read(text: &str, module: &[&str], rooms: &[&str]) -> syn::Result<SourceFacts> {
    let file = syn::parse_file(text)?;
    let mut reader = Reader {
        module: module.iter().map(|&name| name.to_owned()).collect(),
        rooms,
        is_test: false,
        facts: SourceFacts::default(),
    };
    reader.visit_file(&file);
    let tokens: TokenStream = syn::parse_str(text)?;
    identifiers(tokens, &mut reader.facts.identifiers);
    Ok(reader.facts)
}

fn identifiers(tokens: TokenStream, found: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => _ = found.insert(ident.to_string()),
            TokenTree::Group(group) => identifiers(group.stream(), found),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

struct Reader<'a> {
    /// The module that is being read, from the crate's root.
    module: Vec<String>,
    rooms: &'a [&'a str],
    is_test: bool,
    facts: SourceFacts,
}

impl Reader<'_> {
    /// Notes a path that stands in the current module.
    fn note(&mut self, path: &[String], is_import: bool, line: usize) {
        if let Some(target) = self.target(path, is_import) {
            self.facts.targets.insert((target, line));
        }
    }

    fn target(&self, path: &[String], is_import: bool) -> Option<Target> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => self.module.clone(),
            CRATE if self.module.is_empty() => Vec::new(),
            // Without a word before it, a room can only be named at the root; alone, it may be a value.
            name if self.module.is_empty() && self.rooms.contains(&name) && (is_import || !rest.is_empty()) => {
                return Some(Target::Room(name.to_owned()));
            }
            name => return Some(Target::Outside(name.to_owned())),
        };
        if first == "super" {
            at.pop();
        }
        while rest.first().is_some_and(|name| name == "super") {
            at.pop();
            rest = &rest[1..];
        }
        at.extend(rest.iter().filter(|name| *name != "self").cloned());
        match at.into_iter().next() {
            Some(room) => Some(Target::Room(room)),
            // `pub(crate)` names the root too, and hides nothing.
            None => is_import.then(|| Target::Room("*".to_owned())),
        }
    }

    fn note_use(&mut self, tree: &syn::UseTree, prefix: &[String]) {
        let with = |name: &syn::Ident| [prefix, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.note_use(&path.tree, &with(&path.ident)),
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.note_use(tree, prefix);
                }
            }
            syn::UseTree::Name(name) => self.note(&with(&name.ident), true, line(&name.ident)),
            syn::UseTree::Rename(name) => self.note(&with(&name.ident), true, line(&name.ident)),
            syn::UseTree::Glob(glob) => {
                let path = [prefix, &["*".to_owned()]].concat();
                self.note(&path, true, glob.star_token.spans[0].start().line);
            }
        }
    }

    /// Notes the paths in the tokens of a macro or an attribute, and the types that a macro makes.
    fn note_tokens(&mut self, tokens: TokenStream, prefix: &[String]) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                // In a group of imports, a new name follows.
                TokenTree::Ident(word) if word == "as" && !prefix.is_empty() => at += 1,
                TokenTree::Ident(word) => {
                    let line = word.span().start().line;
                    let mut path = [prefix, &[word.to_string()]].concat();
                    while is_double_colon(&tokens[at + 1..]) {
                        match tokens.get(at + 3) {
                            Some(TokenTree::Ident(name)) => path.push(name.to_string()),
                            Some(TokenTree::Punct(star)) if star.as_char() == '*' => {
                                path.push("*".to_owned());
                            }
                            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                                self.note_tokens(group.stream(), &path);
                            }
                            _ => break,
                        }
                        at += 3;
                    }
                    if path.len() > 1 {
                        self.note(&path, true, line);
                    }
                    if ["struct", "enum", "union", "trait"].contains(&word.to_string().as_str())
                        && let Some(TokenTree::Ident(name)) = tokens.get(at + 1)
                    {
                        self.note_type(name);
                    }
                }
                TokenTree::Group(group) => self.note_tokens(group.stream(), &[]),
                TokenTree::Punct(star) if star.as_char() == '*' && !prefix.is_empty() => {
                    let line = star.span().start().line;
                    self.note(&[prefix, &["*".to_owned()]].concat(), true, line);
                }
                TokenTree::Punct(_) => {}
                // `#[serde(with = "crate::clock::seconds")]`
                TokenTree::Literal(literal) => self.note_quoted(literal),
            }
            at += 1;
        }
    }

    fn note_quoted(&mut self, literal: &proc_macro2::Literal) {
        let quoted = literal.to_string();
        let path = quoted.trim_matches('"');
        if path.starts_with("crate::") || path.starts_with("super::") {
            let path: Vec<String> = path.split("::").map(str::to_owned).collect();
            self.note(&path, false, literal.span().start().line);
        }
    }

    fn note_type(&mut self, ident: &syn::Ident) {
        let name = ident.to_string();
        if !self.is_test && !REPEATED_TYPES.contains(&name.as_str()) {
            self.facts.types.push(TypeName { name, line: line(ident) });
        }
    }
}

fn line(ident: &syn::Ident) -> usize {
    ident.span().start().line
}

fn is_double_colon(tokens: &[TokenTree]) -> bool {
    let is_colon = |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ':');
    tokens.len() > 1 && tokens[..2].iter().all(is_colon)
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        list.path.is_ident("cfg") && list.tokens.to_string() == "test"
    })
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        visit::visit_item_use(self, item);
        self.note_use(&item.tree, &[]);
    }

    fn visit_use_tree(&mut self, _: &'ast syn::UseTree) {}

    fn visit_item_extern_crate(&mut self, item: &'ast syn::ItemExternCrate) {
        let name = item.ident.to_string();
        let name = if name == "self" { "crate".to_owned() } else { name };
        self.note(&[name], true, line(&item.ident));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if let Some(first) = path.segments.first() {
            // A value that is called `self` is no path.
            let is_value = names.len() == 1 && ["self", "Self"].contains(&names[0].as_str());
            if !is_value {
                self.note(&names, false, line(&first.ident));
            }
        }
        visit::visit_path(self, path);
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        visit::visit_attribute(self, attribute);
        assert!(!attribute.path().is_ident("path"), "#[path] leads to a file whose module the guard cannot tell");
    }

    /// Everything that is not parsed: macros, attributes, and syntax that the parser does not know.
    fn visit_token_stream(&mut self, tokens: &'ast TokenStream) {
        self.note_tokens(tokens.clone(), &[]);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let was_test = self.is_test;
        self.is_test |= is_for_tests(&item.attrs);
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
        self.is_test = was_test;
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.note_type(&item.ident);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.note_type(&item.ident);
        visit::visit_item_enum(self, item);
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.note_type(&item.ident);
        visit::visit_item_union(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.note_type(&item.ident);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.note_type(&item.ident);
        visit::visit_item_type(self, item);
    }
}
