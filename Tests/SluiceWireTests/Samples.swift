import SluiceValues
import TestSupport
import SluiceCore

/// Random values, rows and changes over a type that has every kind of property.
struct Samples {
    var random: SplitMix64

    init(seed: UInt64) { random = SplitMix64(seed: seed) }

    /// Numbers are not in index order, so that the order of fields is put to the test.
    static let type = ObjectType(
        name: "Everything",
        properties: [
            Property(id: 300, name: "_id", type: .objectId),
            Property(id: 1, name: "flag", type: .bool, isOptional: true),
            Property(id: 7, name: "count", type: .int, isOptional: true),
            Property(id: 2, name: "ratio", type: .float, isOptional: true),
            Property(id: 3, name: "weight", type: .double, isOptional: true),
            Property(id: 4, name: "price", type: .decimal, isOptional: true),
            Property(id: 5, name: "title", type: .string, isOptional: true),
            Property(id: 6, name: "blob", type: .binary, isOptional: true),
            Property(id: 8, name: "at", type: .timestamp, isOptional: true),
            Property(id: 9, name: "token", type: .uuid, isOptional: true),
            Property(id: 10, name: "owner", type: .link(to: "Everything"), isOptional: true),
            Property(id: 11, name: "any", type: .mixed, isOptional: true),
            Property(id: 12, name: "address", type: .embedded("Address"), isOptional: true),
            Property(id: 13, name: "tags", type: .string, collection: .list),
            Property(id: 14, name: "scores", type: .int, collection: .set),
            Property(id: 15, name: "attributes", type: .mixed, collection: .dictionary),
        ])
    static let asymmetric = ObjectType(
        name: "Reading", kind: .asymmetric,
        properties: [Property(id: 1, name: "_id", type: .uuid), Property(id: 2, name: "level", type: .double)])
    static let embedded = ObjectType(
        name: "Address", kind: .embedded, properties: [Property(id: 1, name: "street", type: .string)], primaryKey: nil)
    static let schema = Schema([embedded, type, asymmetric])

    mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }
    mutating func chance(_ percent: Int) -> Bool { below(100) < percent }
    mutating func word() -> UInt64 { [0, 1, UInt64.max, random.next(), random.next() >> 40][below(5)] }
    mutating func bytes() -> [UInt8] { (0..<[0, 3, 40, 130, 20_000][below(5)]).map { _ in UInt8(truncatingIfNeeded: random.next()) } }

    mutating func text(ascii: Bool = false) -> String {
        let alphabet = ascii ? Array("abcXYZ019 _") : Array("abcXYZ é世🧪\u{0}")
        return String((0..<[0, 1, 12, 126, 300][below(5)]).map { _ in alphabet[below(alphabet.count)] })
    }

    mutating func time() -> Timestamp {
        let (seconds, nanoseconds) = (chance(10) ? [.min, 0, .max][below(3)] : Int64(bitPattern: word()), Int32(below(1_000_000_000)))
        return Timestamp(seconds: seconds, nanoseconds: seconds < 0 ? -nanoseconds : nanoseconds)
    }

    mutating func value(_ kind: Int, depth: Int) -> Value {
        switch kind {
        case 0: .null
        case 1: .bool(chance(50))
        case 2: .int(Int64(bitPattern: word()))
        case 3: .float(Float(bitPattern: UInt32(truncatingIfNeeded: word())))
        case 4: .double(Double(bitPattern: word()))
        case 5: .decimal(Decimal128(high: word(), low: word()))
        case 6: .string(text())
        case 7: .binary(bytes())
        case 8: .timestamp(time())
        case 9: .objectId(ObjectIdentifierBytes(high: word(), low: UInt32(truncatingIfNeeded: word())))
        case 10: .uuid(UUIDBytes(high: word(), low: word()))
        case 11: .list((0..<below(5)).map { _ in any(depth: depth + 1) })
        case 12: dictionary(depth: depth)
        default: .link(type: text(), key: value([2, 6, 9, 10][below(4)], depth: depth))
        }
    }

    mutating func dictionary(depth: Int) -> Value {
        var entries: [String: Value] = [:]
        for _ in 0..<below(5) { entries[text(ascii: true)] = any(depth: depth + 1) }
        return .dictionary(entries)
    }

    mutating func any(depth: Int = 0) -> Value { value(below(depth < 4 ? 14 : 11), depth: depth) }

    /// A value that the property takes.
    mutating func value(of property: Property) -> Value {
        switch property.collection {
        case .list, .set: return .list((0..<below(6)).map { _ in element(property.type) })
        case .dictionary: return dictionary(depth: 0)
        case .none: return chance(10) ? .null : element(property.type)
        }
    }

    private mutating func element(_ type: PropertyType) -> Value {
        switch type {
        case .bool: value(1, depth: 0)
        case .int: value(2, depth: 0)
        case .float: value(3, depth: 0)
        case .double: value(4, depth: 0)
        case .decimal: value(5, depth: 0)
        case .string: value(6, depth: 0)
        case .binary: value(7, depth: 0)
        case .timestamp: value(8, depth: 0)
        case .objectId: value(9, depth: 0)
        case .uuid: value(10, depth: 0)
        case .mixed: any()
        case .link: value([2, 6, 9, 10][below(4)], depth: 0)
        case .embedded: dictionary(depth: 0)
        }
    }

    /// A whole row now and then with properties left out.
    mutating func row(_ type: ObjectType = Samples.type, whole: Bool = false) -> Row {
        let partial = !whole && chance(50)
        return Row(type.properties.map { partial && chance(40) ? nil : value(of: $0) })
    }
}

// MARK: Edits

extension Samples {
    mutating func reference() -> ElementRef {
        let hash = ValueHash(rawValue: word())
        switch below(3) {
        case 0: return .listed(below(1_000), hash)
        case 1: return .own(word(), index: below(1_000), hash)
        default: return .seen(below(1_000))
        }
    }

    mutating func edit() -> Edit {
        let size = chance(30) ? below(1_000) : nil
        let after = chance(50) ? reference() : nil
        switch below(10) {
        case 0: return Edit("tags", [.element(reference())], .set(.string(text()), isDefault: chance(50)), priorSize: size)
        case 1: return Edit("tags", .insert(.string(text()), after: after, tag: word()), priorSize: size)
        case 2: return Edit("tags", [.element(reference())], .move(after: after, tag: word()))
        case 3: return Edit("tags", [.element(reference())], .remove, priorSize: size)
        case 4: return Edit("scores", .setInsert(.int(Int64(bitPattern: word()))))
        case 5: return Edit("scores", .setErase(.int(Int64(bitPattern: word()))))
        case 6: return Edit("attributes", [.key(text()), .element(reference()), .key(text())], .set(any()))
        case 7: return Edit("attributes", [.key(text())], .add(Int64(bitPattern: word())))
        case 8: return Edit("address", .become(.object))
        default: return Edit("any", .clear([Edit.Container.list, .dictionary][below(2)]))
        }
    }
}
