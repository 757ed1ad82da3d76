//! Quantities such as `500m` or `1.5Gi`.

use std::cmp::Ordering;

use k1s_object::quantity::Quantity;

use super::{int, opaque, scan_cost, scan_estimate, text, unit_cost, unit_estimate, wrap};
use crate::{
    error::EvalError,
    function::{Call, Function, Overload},
    types::Type,
    value::{Opaque, Value},
};

impl Opaque for Quantity {
    fn type_name(&self) -> &str {
        "kubernetes.Quantity"
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.downcast::<Quantity>() == Some(self)
    }

    fn equality_cost(&self) -> Option<u64> {
        Some(1)
    }
}

fn quantity<'v>(args: &'v [Value<'_>], index: usize) -> Result<&'v Quantity, EvalError> {
    opaque(args, index)
}

fn compare(args: &[Value<'_>]) -> Result<Ordering, EvalError> {
    Ok(quantity(args, 0)?.cmp(quantity(args, 1)?))
}

/// The functions of the library `kubernetes.quantity`.
pub(super) fn functions() -> Vec<Function> {
    let quantities = |count| vec![Type::opaque("kubernetes.Quantity"); count];
    let one = || Type::opaque("kubernetes.Quantity");
    let parsed = |name, id, result, call: Call| {
        let overload = Overload::global(id, vec![Type::String], result, call);
        Function::new(name, vec![overload.with_cost(scan_estimate, scan_cost)])
    };
    let member = |id, params, result, call: Call| {
        Overload::member(id, params, result, call).with_cost(unit_estimate, unit_cost)
    };
    let of_one =
        |name, id, result, call: Call| Function::new(name, vec![member(id, quantities(1), result, call)]);
    let of_two =
        |name, id, result, call: Call| Function::new(name, vec![member(id, quantities(2), result, call)]);
    vec![
        parsed("quantity", "string_to_quantity", one(), |args| {
            Ok(wrap(Quantity::parse(text(args, 0)?).map_err(EvalError::new)?))
        }),
        parsed("isQuantity", "is_quantity_string", Type::Bool, |args| {
            Ok(Quantity::parse(text(args, 0)?).is_ok().into())
        }),
        // Not a member function, other than its documentation says.
        Function::new(
            "sign",
            vec![
                Overload::global("quantity_sign", quantities(1), Type::Int, |args| {
                    Ok(i64::from(quantity(args, 0)?.sign()).into())
                })
                .with_cost(unit_estimate, unit_cost),
            ],
        ),
        of_two("isGreaterThan", "quantity_is_greater_than", Type::Bool, |args| {
            Ok((compare(args)? == Ordering::Greater).into())
        }),
        of_two("isLessThan", "quantity_is_less_than", Type::Bool, |args| {
            Ok((compare(args)? == Ordering::Less).into())
        }),
        of_two("compareTo", "quantity_compare_to", Type::Int, |args| Ok((compare(args)? as i64).into())),
        of_one("asApproximateFloat", "quantity_get_float", Type::Double, |args| {
            Ok(Value::Double(quantity(args, 0)?.approximate_f64()))
        }),
        of_one("asInteger", "quantity_get_int", Type::Int, |args| match quantity(args, 0)?.as_go_i64() {
            Some(value) => Ok(value.into()),
            None => Err(EvalError::new("cannot convert value to integer")),
        }),
        of_one("isInteger", "quantity_is_integer", Type::Bool, |args| {
            Ok(quantity(args, 0)?.as_go_i64().is_some().into())
        }),
        Function::new(
            "add",
            vec![
                member("quantity_add", quantities(2), one(), |args| {
                    Ok(wrap(quantity(args, 0)?.add(quantity(args, 1)?)))
                }),
                member("quantity_add_int", vec![one(), Type::Int], one(), |args| {
                    Ok(wrap(quantity(args, 0)?.add(&Quantity::from_i64(int(args, 1)?))))
                }),
            ],
        ),
        Function::new(
            "sub",
            vec![
                member("quantity_sub", quantities(2), one(), |args| {
                    Ok(wrap(quantity(args, 0)?.sub(quantity(args, 1)?)))
                }),
                member("quantity_sub_int", vec![one(), Type::Int], one(), |args| {
                    Ok(wrap(quantity(args, 0)?.sub(&Quantity::from_i64(int(args, 1)?))))
                }),
            ],
        ),
    ]
}
