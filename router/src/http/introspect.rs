//! The field names of a wire type, as its parser knows them: serde is asked, so no list can drift from the structure.

use std::cell::Cell;

use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// The names of a structure's fields; none if the type is no structure.
pub fn field_names<T: DeserializeOwned>() -> &'static [&'static str] {
    let names = Cell::new(&[][..]);
    // The probe notes what it was asked for and has nothing to give: its error is not of interest.
    let _nothing_to_read = T::deserialize(Probe(&names));
    names.get()
}

/// A deserializer that only listens.
struct Probe<'a>(&'a Cell<&'static [&'static str]>);

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.set(fields);
        Err(Error::custom(""))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        Err(Error::custom(""))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
