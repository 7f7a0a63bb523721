import SluiceCore
import SluiceValues

/// A property that can be a link, of a class or of an object embedded in it.
struct LinkPlace: Hashable {
    /// The path as `relationships.json` has it: `address.country`, `stops.[].station`.
    var path: String
    /// The type of the keys.
    var type: String
    var isList: Bool

    /// The parts of the path.
    var names: [String] { path.split(separator: ".").map(String.init) }

    /// The types of keys that identify a collection.
    private static let types: Set<String> = ["objectId", "uuid", "string"]

    /// Returns the places in the schema of a property. Values of dictionaries have none.
    static func all(in schema: JSON, at path: String) -> [LinkPlace] {
        if let properties = schema["properties"]?.members {
            return properties.filter { $0.key != "_id" }.flatMap { all(in: $0.value, at: "\(path).\($0.key)") }
        }
        if let items = schema["items"], items["properties"] != nil { return all(in: items, at: "\(path).[]") }
        let value = schema["items"] ?? schema
        guard let type = value["bsonType"]?.string, types.contains(type) else { return [] }
        return [LinkPlace(path: path, type: type, isList: schema["items"] != nil)]
    }

    /// `true` if an exception is a value of this property.
    func has(_ exception: TypeException) -> Bool {
        let place = path.replacing(".[]", with: "[]")
        return exception.path == place || exception.path == "\(place)[]"
    }
}

/// A property whose values are keys of a collection.
struct LinkFinding: Hashable {
    var place: LinkPlace
    var target: CollectionName
    var matched: Int
    var sampled: Int

    var json: JSON {
        [
            "path": .string(place.path), "target": .string(target.description), "matched": .int(Int64(matched)),
            "sampled": .int(Int64(sampled)),
        ]
    }
}

/// Samples values of the fields of a collection that may be keys of another one.
///
/// Memory is bounded: at each of `levels` levels of objects `mostFields` fields with `mostValues` values each. The sample of a field is
/// drawn from all of its values (reservoir sampling with a fixed seed, so that a second run finds the same links).
struct LinkSample {
    static let mostValues = 100
    private static let mostFields = 100
    /// The levels of objects that are looked into, with the document itself. A dictionary takes the fields of its own level alone.
    private static let levels = 4
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

    /// The samples by `LinkPlace.path`, and their number at each level.
    private var reservoirs: [String: Reservoir] = [:]
    private var counts = [Int](repeating: 0, count: LinkSample.levels)
    private var state: UInt64 = 0x5EED

    /// Looks at the fields of a document, of the objects in it, and at the elements of lists.
    mutating func add(_ document: [JSON.Member]) { add(document, "", level: 0) }

    private mutating func add(_ members: [JSON.Member], _ prefix: String, level: Int) {
        guard level < Self.levels else { return }
        // A name with a point is no property's, and would be taken for a path.
        for member in members where member.key != "_id" && !member.key.contains(".") {
            let path = prefix + member.key
            if let elements = member.value.array {
                for element in elements { add(element, path, "\(path).[].", level) }
            } else {
                add(member.value, path, "\(path).", level)
            }
        }
    }

    private mutating func add(_ json: JSON, _ path: String, _ prefix: String, _ level: Int) {
        if ValueKind(json) == .object, let members = json.members { return add(members, prefix, level: level + 1) }
        if let value = Self.key(json) { add(value, path, level) }
    }

    private mutating func add(_ value: Value, _ field: String, _ level: Int) {
        if reservoirs[field] == nil {
            guard counts[level] < Self.mostFields else { return }
            counts[level] += 1
        }
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

    /// Returns the collection that a property links to.
    ///
    /// - Parameter keys: The candidates that are keys, by collection.
    func link(at place: LinkPlace, keys: [CollectionName: Set<Value>]) -> LinkFinding? {
        guard let values = reservoirs[place.path]?.values, Set(values).count >= Self.leastValues else { return nil }
        let findings = keys.map { name, known in
            LinkFinding(place: place, target: name, matched: values.count { known.contains($0) }, sampled: values.count)
        }
        let best = findings.max { ($0.matched, $1.target) < ($1.matched, $0.target) }
        return best.flatMap { Double($0.matched) >= Self.leastShare * Double($0.sampled) ? $0 : nil }
    }
}
