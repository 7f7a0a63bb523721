import SluiceCore
import SluiceValues

/// A field whose values are keys of a collection.
struct LinkFinding: Hashable {
    var target: CollectionName
    var matched: Int
    var sampled: Int
}

/// Samples values of the fields of a collection that may be keys of another one.
///
/// Memory is bounded: `mostFields` fields with `mostValues` values each. The sample of a field is drawn from all of its values (reservoir
/// sampling with a fixed seed, so that a second run finds the same links).
struct LinkSample {
    static let mostValues = 100
    private static let mostFields = 100
    /// The least share of a sample that must be keys.
    static let leastShare = 0.9
    /// The longest text that is sampled, in bytes.
    private static let textBytes = 256
    /// The least number of different values of a sample.
    private static let leastValues = 2

    private struct Reservoir {
        var seen: UInt64 = 0
        var values: [Value] = []
    }

    private var reservoirs: [String: Reservoir] = [:]
    private var state: UInt64 = 0x5EED

    /// Looks at the top-level fields of a document, and the elements of lists.
    mutating func add(_ document: [JSON.Member]) {
        for member in document where member.key != "_id" {
            if let elements = member.value.array {
                for element in elements { add(element, member.key) }
            } else {
                add(member.value, member.key)
            }
        }
    }

    private mutating func add(_ json: JSON, _ field: String) {
        guard let value = Self.key(json), reservoirs[field] != nil || reservoirs.count < Self.mostFields else { return }
        var reservoir = reservoirs[field] ?? Reservoir()
        reservoir.seen += 1
        if reservoir.values.count < Self.mostValues {
            reservoir.values.append(value)
        } else {
            let place = random() % reservoir.seen
            if place < UInt64(Self.mostValues) { reservoir.values[Int(place)] = value }
        }
        reservoirs[field] = reservoir
    }

    /// Returns a value that can be a key of another collection.
    ///
    /// Integers are left out, because small numbers are keys of nearly every collection with integers as keys.
    static func key(_ json: JSON) -> Value? {
        switch ExtendedForm(json) {
        case .objectId(let id): return .objectId(id)
        case .uuid(let id): return .uuid(id)
        default: return json.string.flatMap { (1...textBytes).contains($0.utf8.count) ? .string($0) : nil }
        }
    }

    private mutating func random() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state >> 11
    }

    /// The different values of all samples.
    var candidates: Set<Value> { Set(reservoirs.values.flatMap(\.values)) }

    /// Returns the collection that a field links to.
    ///
    /// - Parameter keys: The candidates that are keys, by collection.
    func link(of field: String, keys: [CollectionName: Set<Value>]) -> LinkFinding? {
        guard let values = reservoirs[field]?.values, Set(values).count >= Self.leastValues else { return nil }
        let findings = keys.map { name, known in
            LinkFinding(target: name, matched: values.count { known.contains($0) }, sampled: values.count)
        }
        let best = findings.max { ($0.matched, $1.target) < ($1.matched, $0.target) }
        return best.flatMap { Double($0.matched) >= Self.leastShare * Double($0.sampled) ? $0 : nil }
    }
}
