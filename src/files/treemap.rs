//! Rectangles whose areas are proportional to weights: the squarified treemap of Bruls, Huizing and van Wijk. Pure.

/// A rectangle of a treemap, in the units of the area that it divides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TreemapRectangle {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

impl TreemapRectangle {
    pub const fn new(x: f64, y: f64, width: f64, height: f64) -> Self {
        Self { x, y, width, height }
    }

    pub fn area(self) -> f64 {
        self.width * self.height
    }

    /// Splits off a strip of this area along the shorter side: the strip, and what is left.
    fn split(self, area: f64) -> (Self, Self) {
        if self.width >= self.height {
            let width = (area / self.height).min(self.width);
            let rest = Self { x: self.x + width, width: self.width - width, ..self };
            (Self { width, ..self }, rest)
        } else {
            let height = (area / self.width).min(self.height);
            let rest = Self { y: self.y + height, height: self.height - height, ..self };
            (Self { height, ..self }, rest)
        }
    }
}

/// Divides an area among weights, in their order. Shapes are closest to squares if the largest weight comes first.
/// Weights that aren't positive get an empty rectangle.
pub fn squarify(weights: &[f64], area: TreemapRectangle) -> Vec<TreemapRectangle> {
    let weights: Vec<f64> = weights.iter().map(|weight| if *weight > 0.0 { *weight } else { 0.0 }).collect();
    let total: f64 = weights.iter().sum();
    let scale = area.area() / total;
    if !scale.is_finite() || scale <= 0.0 {
        return vec![TreemapRectangle { width: 0.0, height: 0.0, ..area }; weights.len()];
    }
    let areas: Vec<f64> = weights.iter().map(|weight| weight * scale).collect();
    let mut placed = Vec::with_capacity(areas.len());
    let mut rest = area;
    while placed.len() < areas.len() {
        let waiting = &areas[placed.len()..];
        let taken = strip_len(waiting, rest.width.min(rest.height));
        let (strip, behind) = rest.split(waiting[..taken].iter().sum());
        place_in_strip(&waiting[..taken], strip, rest.width >= rest.height, &mut placed);
        rest = behind;
    }
    placed
}

/// How many of the areas make the best shapes side by side along a side of this length; at least one.
fn strip_len(areas: &[f64], side: f64) -> usize {
    let mut best = f64::INFINITY;
    let mut sum = 0.0;
    for (count, area) in areas.iter().enumerate() {
        sum += area;
        let worst = areas[..=count].iter().map(|area| aspect_ratio(*area, sum, side)).fold(0.0, f64::max);
        if worst > best {
            return count;
        }
        best = worst;
    }
    areas.len()
}

/// The ratio of the longer side to the shorter one, for an area in a strip.
fn aspect_ratio(area: f64, strip: f64, side: f64) -> f64 {
    let thickness = strip / side;
    let length = area / thickness;
    let ratio = (thickness / length).max(length / thickness);
    if ratio.is_nan() { f64::INFINITY } else { ratio }
}

fn place_in_strip(areas: &[f64], strip: TreemapRectangle, is_column: bool, placed: &mut Vec<TreemapRectangle>) {
    let total: f64 = areas.iter().sum();
    let mut before = 0.0;
    for area in areas {
        let part = |length: f64, amount: f64| if total > 0.0 { length * amount / total } else { 0.0 };
        placed.push(if is_column {
            let (y, height) = (strip.y + part(strip.height, before), part(strip.height, *area));
            TreemapRectangle { y, height, ..strip }
        } else {
            let (x, width) = (strip.x + part(strip.width, before), part(strip.width, *area));
            TreemapRectangle { x, width, ..strip }
        });
        before += area;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const AREA: TreemapRectangle = TreemapRectangle::new(10.0, 20.0, 600.0, 400.0);

    /// The example of the paper: 6 × 4, and the first strip holds two squares of 3 × 2.
    #[test]
    fn example_of_the_paper() {
        let tiles = squarify(&[6.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0], TreemapRectangle::new(0.0, 0.0, 6.0, 4.0));
        let round = |number: f64| (number * 100.0).round() / 100.0;
        let shown: Vec<_> = tiles.iter().map(|t| [t.x, t.y, t.width, t.height].map(round)).collect();
        assert_eq!(shown[..3], [[0.0, 0.0, 3.0, 2.0], [0.0, 2.0, 3.0, 2.0], [3.0, 0.0, 1.71, 2.33]]);
        let worst = tiles.iter().map(|t| (t.width / t.height).max(t.height / t.width)).fold(0.0, f64::max);
        assert!(worst < 3.0, "{worst}");
    }

    #[test]
    fn nothing_to_divide() {
        assert!(squarify(&[], AREA).is_empty());
        for weights in [&[0.0, 0.0][..], &[-1.0, f64::NAN]] {
            assert!(squarify(weights, AREA).iter().all(|tile| tile.area() == 0.0));
        }
        let empty = TreemapRectangle::new(0.0, 0.0, 0.0, 5.0);
        assert!(squarify(&[1.0], empty).iter().all(|tile| tile.area() == 0.0));
        let whole = squarify(&[7.0], AREA);
        assert!(whole.len() == 1 && (whole[0].area() - AREA.area()).abs() < 1e-6, "{whole:?}");
    }

    fn overlap(a: TreemapRectangle, b: TreemapRectangle) -> f64 {
        let width = (a.x + a.width).min(b.x + b.width) - a.x.max(b.x);
        let height = (a.y + a.height).min(b.y + b.height) - a.y.max(b.y);
        width.max(0.0) * height.max(0.0)
    }

    proptest! {
        #[test]
        fn areas_are_proportional_inside_and_apart(mut weights in proptest::collection::vec(0.0_f64..1e15, 1..40)) {
            weights.push(1.0);
            weights.sort_by(|a, b| b.total_cmp(a));
            let total: f64 = weights.iter().sum();
            let tiles = squarify(&weights, AREA);
            prop_assert_eq!(tiles.len(), weights.len());
            for (at, (tile, weight)) in tiles.iter().zip(&weights).enumerate() {
                prop_assert!((tile.area() - weight / total * AREA.area()).abs() < 1e-3, "{:?}", tile);
                prop_assert!(tile.x >= AREA.x - 1e-6 && tile.x + tile.width <= AREA.x + AREA.width + 1e-6);
                prop_assert!(tile.y >= AREA.y - 1e-6 && tile.y + tile.height <= AREA.y + AREA.height + 1e-6);
                for other in &tiles[at + 1..] {
                    prop_assert!(overlap(*tile, *other) < 1e-3, "{:?} {:?}", tile, other);
                }
            }
        }
    }
}
