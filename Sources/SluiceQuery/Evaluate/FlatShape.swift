import SluiceCore

extension Geometry {
    /// The numbers that `FlatShape` reads: the kind, and every part of the shape that can be calculated in advance.
    var numbers: [Double] {
        switch self {
        case .box(let low, let high): return [FlatShape.box, low.longitude, low.latitude, high.longitude, high.latitude]
        case .circle(let center, let radians):
            let vector = Vector(center)
            return [FlatShape.circle, vector.x, vector.y, vector.z, radians]
        case .polygon(let loops):
            var numbers = [FlatShape.polygon, Double(loops.count)]
            for loop in loops {
                numbers.append(Double(loop.count))
                for place in loop {
                    let vector = Vector(place)
                    numbers += [place.longitude, place.latitude, vector.x, vector.y, vector.z]
                }
            }
            return numbers
        }
    }
}

/// A shape among the constants of a program, one number in each cell. It gives the results of its `Geometry` without allocation.
struct FlatShape {
    static let (box, circle, polygon) = (0.0, 1.0, 2.0)

    private let cells: UnsafeRawPointer

    /// - Precondition: `cells` points to the cells of `Geometry.numbers`.
    init(_ cells: UnsafeRawPointer) { self.cells = cells }

    private subscript(_ index: Int) -> Double { cells.load(fromByteOffset: 16 * index + 8, as: Double.self) }

    func contains(_ place: Geometry.Place) -> Bool {
        switch self[0] {
        case FlatShape.box: return isInBox(place)
        case FlatShape.circle: return vector(at: 1).angle(to: Vector(place)) <= self[4]
        default: return isInPolygon(place)
        }
    }

    private func isInBox(_ place: Geometry.Place) -> Bool {
        let (west, south, east, north) = (self[1], self[2], self[3], self[4])
        guard place.latitude >= south, place.latitude <= north else { return false }
        return west <= east
            ? place.longitude >= west && place.longitude <= east : place.longitude >= west || place.longitude <= east
    }

    private func isInPolygon(_ place: Geometry.Place) -> Bool {
        let center = Vector(place)
        var position = 2
        for loop in 0..<Int(self[1]) {
            let count = Int(self[position])
            if isInLoop(place, center, first: position + 1, count) != (loop == 0) { return false }
            position += 1 + 5 * count
        }
        return true
    }

    private func isInLoop(_ place: Geometry.Place, _ center: Vector, first: Int, _ count: Int) -> Bool {
        var turned = 0.0
        for vertex in 0..<count {
            let (this, next) = (first + 5 * vertex, first + 5 * ((vertex + 1) % count))
            if self[this] == place.longitude, self[this + 1] == place.latitude { return true }
            turned += center.turn(from: vector(at: this + 2), to: vector(at: next + 2))
        }
        return turned > .pi
    }

    private func vector(at index: Int) -> Vector { Vector(x: self[index], y: self[index + 1], z: self[index + 2]) }
}
