//! How far times that were not measured can be trusted.

use super::percent;
use dgx_core::domain::{Calibration, Timing};
use dgx_core::record::Run;
use dgx_core::record::schema::DeviceRecord;

/// One sentence on the reliability of modelled times, printed before their table.
pub(crate) fn accuracy(run: &Run) -> Option<String> {
    accuracy_on(&run.header.device, &run.operator.name)
}

/// The same without a run.
pub(crate) fn accuracy_on(device: &DeviceRecord, operator: &str) -> Option<String> {
    if device.timing != Timing::Modelled {
        return None;
    }
    let name = &device.name;
    let Some(known) = &device.calibration else {
        return Some(format!(
            "All times are modelled for {name}, uncalibrated: their error is unknown."
        ));
    };
    let Calibration {
        median,
        worst,
        cells,
        run,
        ..
    } = known;
    let (median, worst) = (percent(*median), percent(*worst));
    let against =
        format!("{median} in the median and {worst} at worst over {cells} cells of {run}");
    let ties = format!("differences below {median} are ties");
    Some(match device.calibrated() {
        true if !device.calibrated_for(operator) => format!(
            "{} There it was off by {against}; for {operator} its error is unknown. {}.",
            modelled_otherwise(name, &device.compared_operators().join(", ")),
            ties.replacen('d', "D", 1)
        ),
        true => {
            format!("All times are modelled for {name}, not measured: off by {against}; {ties}.")
        }
        false => format!(
            "All times are modelled for {name}, uncalibrated: for {} the same model was off by \
             {against}; {ties}.",
            known.device
        ),
    })
}

/// For a model that was compared with a card only for other operators.
pub(crate) fn modelled_otherwise(device: &str, operators: &str) -> String {
    format!(
        "All times are modelled for {device}, not measured. The model was checked on {operators} \
         only."
    )
}

/// The same in short, for repeated use.
pub(crate) fn accuracy_in_short(device: &DeviceRecord, operator: &str) -> Option<String> {
    let modelled = device.timing == Timing::Modelled;
    if modelled && device.calibrated() && !device.calibrated_for(operator) {
        let operators = device.compared_operators().join(", ");
        return Some(modelled_otherwise(&device.name, &operators));
    }
    let known = device.calibration.as_ref();
    let error = match known.filter(|_| device.calibrated()) {
        Some(known) => format!(
            ": off by {} in the median, {} at worst",
            percent(known.median),
            percent(known.worst)
        ),
        None => ", uncalibrated".to_owned(),
    };
    modelled.then(|| format!("All times are modelled for {}{error}.", device.name))
}

/// The error of modelled times: `±3.5 %`, or `uncalibrated`; `None` for others.
pub(crate) fn model_error(run: &Run) -> Option<String> {
    let device = &run.header.device;
    let known = device.calibration.as_ref();
    let checked = device.calibrated_for(&run.operator.name);
    (run.timing() == Timing::Modelled).then(|| match known.filter(|_| checked) {
        Some(known) => format!("±{}", percent(known.median)),
        None => "uncalibrated".to_owned(),
    })
}

/// The heading of times by shape: `modelled µs for NVIDIA H200 (±3.5 %)`.
pub(crate) fn micros_title(run: &Run) -> String {
    let device = &run.header.device;
    let timing = device.timing.as_str();
    match model_error(run) {
        Some(error) => format!("{timing} µs for {} ({error})", device.name),
        None => format!("{timing} µs"),
    }
}

/// Describes the times of a run: `modelled for NVIDIA H200, ±3.5 %`.
pub(crate) fn times(run: &Run) -> String {
    let device = &run.header.device;
    let timing = device.timing.as_str();
    match model_error(run) {
        Some(error) => format!("{timing} for {}, {error}", device.name),
        None => timing.to_owned(),
    }
}

/// Describes the times of two runs.
pub(crate) fn between(a: &Run, b: &Run) -> String {
    match a.timing() == b.timing() {
        true if times(a) == times(b) => times(a),
        true => a.timing().as_str().to_owned(),
        false => format!("{} over {}", b.timing().as_str(), a.timing().as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::record::synthetic::Synthetic;

    const USUAL: &str = "nvfp4-dual-gemm";

    fn worded(change: impl FnOnce(&mut DeviceRecord)) -> (String, String) {
        let mut run = Synthetic::round4().modelled().run();
        change(&mut run.header.device);
        (accuracy(&run).unwrap(), micros_title(&run))
    }

    #[test]
    fn the_second_time_a_line_is_enough() {
        let mut device = Synthetic::round4().modelled().run().header.device;
        let expected =
            "All times are modelled for NVIDIA H200: off by 3.5 % in the median, 17 % at worst.";
        assert_eq!(accuracy_in_short(&device, USUAL).as_deref(), Some(expected));
        device.name = "NVIDIA B200".to_owned();
        let expected = "All times are modelled for NVIDIA B200, uncalibrated.";
        assert_eq!(accuracy_in_short(&device, USUAL).as_deref(), Some(expected));
        let measured = Synthetic::round4().run().header.device;
        assert_eq!(accuracy_in_short(&measured, USUAL), None);
    }

    #[test]
    fn a_modelled_time_says_how_far_off_it_may_be() {
        let (sentence, title) = worded(|_| {});
        assert_eq!(
            sentence,
            "All times are modelled for NVIDIA H200, not measured: off by 3.5 % in the median \
             and 17 % at worst over 104 cells of final; differences below 3.5 % are ties."
        );
        assert_eq!(title, "modelled µs for NVIDIA H200 (±3.5 %)");
    }

    #[test]
    fn an_operator_that_no_card_timed_has_no_error_of_the_model() {
        let mut run = Synthetic::round4().modelled().run();
        run.operator = dgx_core::operator::named(Some("softmax")).unwrap();
        assert_eq!(
            accuracy(&run).unwrap(),
            "All times are modelled for NVIDIA H200, not measured. The model was checked on \
             nvfp4-dual-gemm only. There it was off by 3.5 % in the median and 17 % at worst over \
             104 cells of final; for softmax its error is unknown. Differences below 3.5 % are ties."
        );
        let title = "modelled µs for NVIDIA H200 (uncalibrated)";
        assert_eq!(micros_title(&run), title);
        let short = accuracy_in_short(&run.header.device, "softmax").unwrap();
        assert!(
            short.ends_with("checked on nvfp4-dual-gemm only."),
            "{short}"
        );
        let known = run.header.device.calibration.as_mut().unwrap();
        known.operators = vec!["softmax".to_owned()];
        assert_eq!(micros_title(&run), "modelled µs for NVIDIA H200 (±3.5 %)");
    }

    #[test]
    fn nobody_borrows_the_calibration_of_another() {
        let (sentence, title) = worded(|device| device.name = "NVIDIA B200".to_owned());
        assert!(sentence.contains("for NVIDIA B200, uncalibrated: for NVIDIA H200"));
        assert_eq!(title, "modelled µs for NVIDIA B200 (uncalibrated)");
        let (sentence, title) = worded(|device| device.calibration = None);
        assert!(sentence.ends_with("their error is unknown."));
        assert_eq!(title, "modelled µs for NVIDIA H200 (uncalibrated)");
        assert_eq!(accuracy(&Synthetic::round4().run()), None);
    }
}
