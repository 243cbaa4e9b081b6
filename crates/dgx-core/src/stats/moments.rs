/// Count, mean and scatter of numbers seen one at a time (Welford's method): all that is needed of
/// a process's blocks, however many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    pub count: u64,
    pub mean: f64,
    /// Sum of squared distances from the mean.
    pub squares: f64,
}

impl Moments {
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
    }

    /// Variance of the mean of these numbers; 0 if there is only one.
    pub(crate) fn mean_variance(&self) -> f64 {
        match self.count as f64 {
            n if n > 1.0 => self.squares / (n - 1.0) / n,
            _ => 0.0,
        }
    }
}

impl FromIterator<f64> for Moments {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut moments = Self::default();
        values.into_iter().for_each(|v| moments.add(v));
        moments
    }
}
