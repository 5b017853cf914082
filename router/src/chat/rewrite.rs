//! Rewrites what templates may say in Jinja2 but the engine does not understand, before a template is compiled:
//! `{% generation %}` blocks (marks for training; only their contents are wanted) and `'...' % value`.

/// The filter that stands for the `%` operator on texts.
pub(super) const PERCENT_FILTER: &str = "python_percent";

/// The template in words that the engine understands.
pub(super) fn rewrite(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    let mut raw = false;
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (close, tag) = match rest.as_bytes().get(1) {
            Some(b'%') => ("%}", true),
            Some(b'{') if !raw => ("}}", false),
            Some(b'#') if !raw => {
                rest = copy(&mut out, rest, rest.find("#}").map_or(rest.len(), |end| end + 2));
                continue;
            }
            _ => {
                rest = copy(&mut out, rest, 1);
                continue;
            }
        };
        let end = inside_end(&rest[2..], close).map_or(rest.len(), |end| end + 2);
        let inside = &rest[2..end];
        match (tag, word(inside)) {
            (true, "raw") => raw = true,
            (true, "endraw") => raw = false,
            _ => {}
        }
        out.push_str(&rest[..2]);
        if raw {
            out.push_str(inside);
        } else {
            rewrite_inside(inside, tag, &mut out);
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

fn copy<'a>(out: &mut String, rest: &'a str, bytes: usize) -> &'a str {
    out.push_str(&rest[..bytes]);
    &rest[bytes..]
}

/// What a tag says without its white-space marks.
fn word(inside: &str) -> &str {
    inside.trim_start_matches(['-', '+']).trim_end_matches(['-', '+']).trim()
}

/// Where the closing mark of a tag or expression begins; marks inside of strings do not count.
fn inside_end(text: &str, close: &str) -> Option<usize> {
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with(close) {
            return Some(at);
        }
        at += token_length(rest);
    }
    None
}

/// The length of a string literal at the start of `text`, else of one character.
fn token_length(text: &str) -> usize {
    let mut characters = text.char_indices();
    let Some((_, first)) = characters.next() else { return 0 };
    if first != '\'' && first != '"' {
        return first.len_utf8();
    }
    let mut escaped = false;
    for (at, c) in characters {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == first => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn rewrite_inside(inside: &str, tag: bool, out: &mut String) {
    match word(inside) {
        "generation" if tag => out.push_str(&inside.replacen("generation", "with", 1)),
        "endgeneration" if tag => out.push_str(&inside.replacen("endgeneration", "endwith", 1)),
        _ => rewrite_percent(inside, out),
    }
}

/// `'...' % operand` becomes `'...'|filter(operand)`; a filter binds as tightly as the operator's operands do.
fn rewrite_percent(inside: &str, out: &mut String) {
    let mut rest = inside;
    while !rest.is_empty() {
        let length = token_length(rest);
        let literal = rest.starts_with(['\'', '"']);
        rest = copy(out, rest, length);
        let Some(operand) = rest.trim_start().strip_prefix('%').filter(|_| literal) else { continue };
        let operand = operand.trim_start();
        let length = operand_length(operand);
        if length == 0 {
            continue;
        }
        out.push('|');
        out.push_str(PERCENT_FILTER);
        out.push('(');
        rewrite_percent(&operand[..length], out);
        out.push(')');
        rest = &operand[length..];
    }
}

/// The length of a name, number, literal or bracketed expression with all its attributes, indices, calls and filters.
fn operand_length(text: &str) -> usize {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let length = match rest.chars().next() {
            Some('(' | '[' | '{') => bracket_length(rest),
            Some('\'' | '"') if at == 0 => token_length(rest),
            Some(c) if c.is_alphanumeric() || matches!(c, '_' | '.' | '|') => c.len_utf8(),
            _ => return at,
        };
        at += length;
    }
}

/// The length of an expression in brackets; 0 when they do not close.
fn bracket_length(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while at < text.len() {
        let rest = &text[at..];
        match rest.as_bytes()[0] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
        at += token_length(rest);
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generation_marks_keep_their_white_space_rules() {
        assert_eq!(rewrite("a{%- generation -%}b{% endgeneration %}"), "a{%- with -%}b{% endwith %}");
        assert_eq!(rewrite("{# {% generation %} #}generation"), "{# {% generation %} #}generation");
        assert_eq!(
            rewrite("{% raw %}{% generation %}{{ '%' % x }}{% endraw %}"),
            "{% raw %}{% generation %}{{ '%' % x }}{% endraw %}"
        );
    }

    #[test]
    fn percent_on_a_literal_becomes_a_filter() {
        assert_eq!(rewrite("{{ '%s' % x }}"), "{{ '%s'|python_percent(x) }}");
        assert_eq!(
            rewrite("{{ a ~ '%s-%d' % (x, f(y)[0]) ~ b }}"),
            "{{ a ~ '%s-%d'|python_percent((x, f(y)[0])) ~ b }}"
        );
        assert_eq!(rewrite("{{ \"%s\" % m.get('a')|upper + c }}"), "{{ \"%s\"|python_percent(m.get('a')|upper) + c }}");
        assert_eq!(rewrite("{{ '%s' % ('%d' % 1) }}"), "{{ '%s'|python_percent(('%d'|python_percent(1))) }}");
    }

    #[test]
    fn everything_else_stays() {
        for source in [
            "{{ a % b }}{% if x == '}}' %}{%- endif %}",
            "{ {{",
            "{% set a = 'it\\'s' -%}",
            "{{ '%}' }}é{",
            "{{ 'a' }}%",
        ] {
            assert_eq!(rewrite(source), source);
        }
    }
}
