//! The arguments of filters, bound as Python binds them: by place or by name, none twice, none unknown. Knows no filter.

use minijinja::value::{Kwargs, Rest};
use minijinja::{Error, ErrorKind, Value};

/// The arguments in the order of `names`; `None` for those that were left out.
pub(super) fn bind<const N: usize>(
    names: [&str; N],
    placed: &Rest<Value>,
    named: &Kwargs,
) -> Result<[Option<Value>; N], Error> {
    if placed.len() > N {
        return Err(Error::new(ErrorKind::TooManyArguments, format!("expected at most {N}")));
    }
    let mut bound = [const { None }; N];
    for (index, name) in names.into_iter().enumerate() {
        // An argument that was given by place stays unused by name, which is an error below.
        bound[index] = match placed.get(index) {
            Some(value) => Some(value.clone()),
            None if named.has(name) => Some(named.get(name)?),
            None => None,
        };
    }
    named.assert_all_used()?;
    Ok(bound)
}

/// An argument as a number or flag of the engine; `default` when it was left out.
pub(super) fn or<T: TryFrom<Value, Error = Error>>(argument: Option<Value>, default: T) -> Result<T, Error> {
    argument.map_or(Ok(default), T::try_from)
}

/// Whether a flag was given and holds, by Python's idea of truth.
pub(super) fn holds(argument: Option<Value>) -> bool {
    argument.is_some_and(|flag| flag.is_true())
}

/// A value that must be a text.
pub(super) fn text(value: &Value) -> Result<&str, Error> {
    let refused = || Error::new(ErrorKind::InvalidOperation, format!("expected a text, not {}", value.kind()));
    value.as_str().ok_or_else(refused)
}
