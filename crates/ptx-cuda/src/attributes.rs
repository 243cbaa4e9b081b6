//! Attributes of launches.

use std::ffi::c_uint;

use crate::call::refuse_part;
use crate::error::{Error, Result};
use crate::launch::Shape;
use crate::state::Device;

/// `cudaLaunchAttribute`, and `CUlaunchAttribute`, which is the same.
#[repr(C)]
pub(crate) struct Attribute {
    id: c_uint,
    padding: c_uint,
    value: [u32; 16],
}

/// Applies launch attributes. Mere hints change nothing.
pub(crate) fn apply(shape: &mut Shape, attributes: &[Attribute]) -> Result {
    for attribute in attributes {
        let [x, y, z, ..] = attribute.value;
        match attribute.id {
            2 => shape.cooperative = x != 0,
            4 => shape.cluster = Some([x, y, z]),
            // Windows of L2, policies, programmatic dependences, priorities and domains.
            0 | 1 | 3 | 5 | 6 | 8..=11 | 14 | 16 | 17 => {}
            id if EVENTS.contains(&id) => {}
            id => return Err(refuse_part("a launch", &format!("attribute {id}"))),
        }
    }
    Ok(())
}

/// Attributes that name an event which the launch records.
const EVENTS: [c_uint; 2] = [7, 12];

/// The events that a launch records.
pub(crate) fn events(device: &Device, attributes: &[Attribute]) -> Result<Vec<usize>> {
    let named = attributes.iter().filter(|a| EVENTS.contains(&a.id));
    let event = |attribute: &Attribute| {
        let [low, high, flags, ..] = attribute.value;
        let event = (u64::from(high) << 32 | u64::from(low)) as usize;
        device.events.get(event)?;
        match flags {
            0 => Ok(event),
            _ => Err(Error::INVALID_VALUE),
        }
    };
    named.map(event).collect()
}
