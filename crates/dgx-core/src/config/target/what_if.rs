//! `h200,sms=144,clock=1.5`: a target with some of its numbers changed.

use ptx_machine::Machine;

use super::GUIDE;
use super::reader::{SMS, deepest_drop, range};
use crate::diagnostic::{InputError, nearest};
use crate::domain::{Device, printable_line, short};

const EXAMPLE: &str = "write e.g. h200,sms=144,clock=1.5";
const MOST_SMS: f64 = 1e4;
/// One clock in GHz, with or without products in flight.
const CLOCK: &str = "clock";
const CLOCKS: [&str; 2] = ["clock_mhz", "rested_clock_mhz"];

/// The device with these changes, which its name then lists.
pub(super) fn changed(mut device: Device, changes: &str) -> Result<Device, InputError> {
    let changes = printable_line(changes);
    let mut applied: Vec<String> = Vec::new();
    let mut changed: Vec<&str> = Vec::new();
    for change in changes.split(',').map(str::trim) {
        let Some((key, value)) = change.split_once('=') else {
            let message = format!("`{change}` changes nothing of a target");
            return Err(InputError::new(message, EXAMPLE));
        };
        let (key, value) = (key.trim(), value.trim());
        let number = number(key, value)?;
        let (places, number) = match key {
            CLOCK => (CLOCKS.to_vec(), 1000.0 * number),
            _ => (vec![key], number),
        };
        for place in places {
            if changed.contains(&place) {
                let message = format!("`{change}` changes `{place}` a second time");
                return Err(InputError::new(message, EXAMPLE));
            }
            set(&mut device, place, number)?;
            changed.push(place);
        }
        applied.push(format!("{key}={value}"));
    }
    drop_fits(&device)?;
    device.name = format!("{} with {}", device.name, applied.join(", "));
    Ok(device)
}

/// Refuses a clock that all SMs together would bring down to nothing: the limits of a target file
/// apply here too.
fn drop_fits(device: &Device) -> Result<(), InputError> {
    let Some(model) = &device.model else {
        return Ok(());
    };
    let (drop, clock) = (model.clock_drop_mhz, model.clock_mhz);
    match drop > deepest_drop(model) {
        false => Ok(()),
        true => Err(InputError::new(
            format!("clock_drop_mhz = {drop} is more than half of clock_mhz = {clock}"),
            "change both, e.g. h200,clock_mhz=50,clock_drop_mhz=1",
        )),
    }
}

fn number(key: &str, value: &str) -> Result<f64, InputError> {
    value.parse().map_err(|_| {
        let message = format!("`{value}` is not a number for `{key}`");
        InputError::new(message, EXAMPLE)
    })
}

fn set(device: &mut Device, key: &str, value: f64) -> Result<(), InputError> {
    let machine = device.model.as_mut();
    let Some(place) = machine.and_then(|machine| machine.number_mut(key)) else {
        let message = format!("no number of a target is called `{key}`");
        // A chip without tensor memory lacks the numbers for it.
        let model = device.model.as_ref();
        let given = |name: &&str| model.is_some_and(|model| model.number(name).is_some());
        let names = || Machine::NAMES.iter().copied().filter(given);
        let longer = |name: &&str| !key.is_empty() && name.starts_with(key);
        let words = || [CLOCK].into_iter().chain(names());
        let remedy = match nearest(key, words()).or_else(|| words().find(longer)) {
            Some(close) => format!("did you mean `{close}`? ({GUIDE})"),
            None => format!("sms and the keys of [model] can be changed here; {GUIDE}"),
        };
        return Err(InputError::new(message, remedy));
    };
    let possible = match key {
        SMS => 1.0..=MOST_SMS,
        _ => range(key),
    };
    let whole = key != SMS || value.fract() == 0.0;
    if !possible.contains(&value) || !whole {
        let kind = if key == SMS { "a whole number" } else { "one" };
        let (least, most) = (possible.start(), possible.end());
        return Err(InputError::new(
            format!("{key} = {} is out of range", short(value)),
            format!("give {kind} between {least} and {most:e}"),
        ));
    }
    *place = value;
    if key == SMS {
        device.limits.sms = value as u32;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::find;

    #[test]
    fn a_change_is_made_and_named() {
        let device = find("h200,sms=144, clock_mhz=1500").unwrap();
        let model = device.model.unwrap();
        assert_eq!((device.limits.sms, model.sms), (144, 144.0));
        assert_eq!(model.clock_mhz, 1500.0);
        assert_eq!(device.name, "NVIDIA H200 with sms=144, clock_mhz=1500");
        assert_eq!(device.calibration.unwrap().device, "NVIDIA H200");
        let device = find("h200,clock=1.5").unwrap();
        let model = device.model.unwrap();
        assert_eq!((model.clock_mhz, model.rested_clock_mhz), (1500.0, 1500.0));
        assert_eq!(device.name, "NVIDIA H200 with clock=1.5");
        let file = find(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../configs/targets/b200.toml,sms=74"
        ))
        .unwrap();
        assert_eq!(file.name, "NVIDIA B200 with sms=74");
    }

    #[test]
    fn what_cannot_be_changed_is_refused() {
        let cases = [
            ("h200,", "`` changes nothing", "h200,sms=144"),
            ("h200,sms", "`sms` changes nothing", "h200,sms=144"),
            ("h200,clok=1.5", "called `clok`", "did you mean `clock`?"),
            ("h200,clock=0", "clock_mhz = 0 is out of range", "between"),
            ("h200,sm=1", "called `sm`", "did you mean `sms`?"),
            (
                "h200,sms=x",
                "`x` is not a number for `sms`",
                "h200,sms=144",
            ),
            ("h200,sms=0", "sms = 0 is out of range", "a whole number"),
            (
                "h200,sms=1.5",
                "sms = 1.5 is out of range",
                "a whole number",
            ),
            ("h200,sms=nan", "sms = NaN", "a whole number"),
            ("h200,l2_port=-1", "l2_port = -1", "between 0.001"),
            (
                "h200,sms=1,sms=2",
                "`sms=2` changes `sms` a second time",
                "h200,sms=144",
            ),
            (
                "h200,clock=1.5,clock=1.6",
                "`clock=1.6` changes `clock_mhz` a second time",
                "h200,sms=144",
            ),
            (
                "h200,clock=1.5,rested_clock_mhz=1600",
                "`rested_clock_mhz=1600` changes `rested_clock_mhz` a second time",
                "h200,sms=144",
            ),
            (
                "h200,clock_mhz=1600,clock=1.5",
                "`clock=1.5` changes `clock_mhz` a second time",
                "h200,sms=144",
            ),
            (
                "h200,clock_drop_mhz=1000",
                "clock_drop_mhz = 1000 is more than half of clock_mhz",
                "change both",
            ),
            (
                "h200,clock=0.09",
                "is more than half of clock_mhz = 90",
                "change both",
            ),
            (
                "h200,l2_latency=1e300",
                "l2_latency = 1e300 is out of range",
                "between 0 and 1e6",
            ),
            ("h200,l2_same=2", "l2_same = 2 is out of range", "and 1e0"),
            (
                "h200,memory_beside=2",
                "memory_beside = 2 is out of range",
                "and 1e0",
            ),
            ("h300,sms=1", "h300", "h200, h100, b200"),
            (
                "h200,tmem_load_latency=9",
                "called `tmem_load_latency`",
                "did you mean `memory_latency`?",
            ),
            (
                "b200,tmem_load_latenc=9",
                "called `tmem_load_latenc`",
                "did you mean `tmem_load_latency`?",
            ),
            (
                "b200,tmem_move_column=0",
                "tmem_move_column = 0 is out of range",
                "between 0.001",
            ),
        ];
        for (word, message, remedy) in cases {
            let error = find(word).expect_err(word);
            let text = error.message();
            assert!(text.contains(message), "{word}: {text}");
            let text = error.remedy();
            assert!(text.contains(remedy), "{word}: {text}");
        }
    }
}
