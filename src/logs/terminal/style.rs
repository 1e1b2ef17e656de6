//! Text colours and weights, from terminal codes to CSS classes.

use std::sync::LazyLock;

const COLOUR_NAMES: [&str; 8] = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const FLAG_CLASSES: [&str; 5] = ["b", "dim", "i", "u", "rev"];
const BOLD: u8 = 1;
const DIM: u8 = 2;
const ITALIC: u8 = 4;
const UNDERLINE: u8 = 8;
const REVERSE: u8 = 16;

/// All combinations, built once: 17 foreground colours, 17 background colours, 32 sets of flags.
static CLASSES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut classes = Vec::with_capacity(17 * 17 * 32);
    for front in 0..17 {
        for back in 0..17 {
            for flags in 0..32_u8 {
                let set = FLAG_CLASSES.iter().enumerate().filter(|(at, _)| flags & (1 << at) != 0);
                let words: Vec<String> = [colour_class("fg", front), colour_class("bg", back)]
                    .into_iter()
                    .flatten()
                    .chain(set.map(|(_, word)| (*word).to_owned()))
                    .collect();
                classes.push(words.join(" "));
            }
        }
    }
    classes
});

/// `fg-red`, `bg-bright-blue`; none for 0, the default colour.
fn colour_class(side: &str, number: usize) -> Option<String> {
    let number = number.checked_sub(1)?;
    let bright = if number >= 8 { "bright-" } else { "" };
    COLOUR_NAMES.get(number % 8).map(|name| format!("{side}-{bright}{name}"))
}

/// The style of a character. Colours count from 1; 0 is the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextStyle {
    foreground: u8,
    background: u8,
    flags: u8,
}

impl TextStyle {
    /// The CSS classes. Text never has the colour of its background.
    pub fn class(self) -> &'static str {
        if self == Self::default() {
            return "";
        }
        let back = if self.background == self.foreground { 0 } else { self.background };
        let at = (usize::from(self.foreground) * 17 + usize::from(back)) * 32 + usize::from(self.flags);
        CLASSES.get(at).map_or("", String::as_str)
    }

    /// Applies `ESC [ … m`.
    pub fn apply(&mut self, params: &EscapeSequenceParams) {
        let mut groups = params.groups();
        while let Some(group) = groups.next() {
            match group[0] {
                0 => *self = Self::default(),
                1 => self.flags |= BOLD,
                2 => self.flags |= DIM,
                3 => self.flags |= ITALIC,
                4 if group.get(1) == Some(&0) => self.flags &= !UNDERLINE,
                4 | 21 => self.flags |= UNDERLINE,
                7 => self.flags |= REVERSE,
                22 => self.flags &= !(BOLD | DIM),
                23 => self.flags &= !ITALIC,
                24 => self.flags &= !UNDERLINE,
                27 => self.flags &= !REVERSE,
                code @ 30..=37 => self.foreground = low_byte(code - 30) + 1,
                code @ 90..=97 => self.foreground = low_byte(code - 90) + 9,
                39 => self.foreground = 0,
                code @ 40..=47 => self.background = low_byte(code - 40) + 1,
                code @ 100..=107 => self.background = low_byte(code - 100) + 9,
                49 => self.background = 0,
                code @ (38 | 48) => {
                    let wide = extended_colour(&group[1..], &mut groups);
                    match (code, wide) {
                        (38, Some(colour)) => self.foreground = colour,
                        (_, Some(colour)) => self.background = colour,
                        (_, None) => {}
                    }
                }
                _ => {}
            }
        }
    }
}

/// What follows 38 or 48: `5;n` or `2;r;g;b`, in one group with colons or in groups of their own.
fn extended_colour<'a>(sub: &[u16], groups: &mut impl Iterator<Item = &'a [u16]>) -> Option<u8> {
    if let Some((kind, rest)) = sub.split_first() {
        return match (kind, rest) {
            (5, [number, ..]) => Some(from_256(*number)),
            // With four numbers, the first one is a colour space.
            (2, [_, red, green, blue, ..] | [red, green, blue]) => Some(nearest_colour(*red, *green, *blue)),
            _ => None,
        };
    }
    let mut next = || groups.next().map(|group| group[0]);
    match next()? {
        5 => Some(from_256(next()?)),
        2 => Some(nearest_colour(next()?, next()?, next()?)),
        _ => None,
    }
}

/// Maps one of the 256 colours.
fn from_256(number: u16) -> u8 {
    match number {
        0..=15 => low_byte(number) + 1,
        16..=231 => {
            let level = |step: u16| if step == 0 { 0 } else { 55 + step * 40 };
            let cube = number - 16;
            nearest_colour(level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        _ => {
            let grey = 8 + (number.min(255) - 232) * 10;
            nearest_colour(grey, grey, grey)
        }
    }
}

/// The one of the 16 colours with the same hue, or the grey of about the same brightness.
fn nearest_colour(red: u16, green: u16, blue: u16) -> u8 {
    let [red, green, blue] = [red, green, blue].map(|part| part.min(255));
    let most = red.max(green).max(blue);
    let least = red.min(green).min(blue);
    if most - least < 40 {
        return match most {
            0..=63 => 1,
            64..=149 => 9,
            150..=223 => 8,
            _ => 16,
        };
    }
    let middle = u16::midpoint(most, least);
    let bit = |part: u16, value: u8| if part > middle { value } else { 0 };
    let bright = if most > 215 { 8 } else { 0 };
    bit(red, 1) + bit(green, 2) + bit(blue, 4) + bright + 1
}

/// The low byte; no larger numbers get here.
fn low_byte(number: u16) -> u8 {
    u8::try_from(number).unwrap_or(0)
}

/// The most numbers in a sequence.
const MAX_NUMBERS: usize = 32;

/// The numbers of a sequence: groups separated by semicolons, their parts by colons.
#[derive(Debug, Default)]
pub struct EscapeSequenceParams {
    numbers: [u16; MAX_NUMBERS],
    /// Whether each number continues its group.
    is_subparam: [bool; MAX_NUMBERS],
    last: usize,
    /// Whether it is a private sequence of the terminal.
    pub is_private: bool,
}

impl EscapeSequenceParams {
    pub fn parse(text: &str) -> Self {
        let mut params = Self::default();
        text.chars().for_each(|c| params.push(c));
        params
    }

    fn push(&mut self, c: char) {
        match c {
            '0'..='9' => {
                let digit = c.to_digit(10).and_then(|digit| u16::try_from(digit).ok()).unwrap_or(0);
                if let Some(number) = self.numbers.get_mut(self.last) {
                    *number = number.saturating_mul(10).saturating_add(digit);
                }
            }
            ';' | ':' => {
                self.last = (self.last + 1).min(MAX_NUMBERS);
                if let Some(part) = self.is_subparam.get_mut(self.last) {
                    *part = c == ':';
                }
            }
            _ => self.is_private = true,
        }
    }

    /// The first number; 0 if there is none.
    pub fn first(&self) -> u16 {
        self.numbers[0]
    }

    /// The groups; none of them is empty.
    fn groups(&self) -> impl Iterator<Item = &[u16]> {
        let end = (self.last + 1).min(MAX_NUMBERS);
        let mut from = 0;
        std::iter::from_fn(move || {
            let first = from;
            (first < end).then(|| {
                from = (first + 1..end).find(|at| !self.is_subparam[*at]).unwrap_or(end);
                &self.numbers[first..from]
            })
        })
    }
}
