import Foundation
import SluiceCore
import SluiceReplica
import TestSupport
import Testing

@testable import SluiceSDK

/// What an app has of a device's file: objects, lists, sets and maps of a Realm, by which it writes and reads. The device sees to the
/// file and its engine, as for every other.
final class OracleObjects {
    private static let classes: [ObjectBase.Type] = [Alpha.self, Beta.self]
    /// Of the app's file.
    static let schema = SluiceCore.Schema(ModelSchema.closure(of: classes).map { $0.objectType(isSynced: true) })
    /// Of the play, which adds the class of what objects hold inside.
    static let types = schema.types.filter { $0.kind == .topLevel }

    private let realm: Realm
    private let app: OracleApp

    init(_ replica: Replica, of app: OracleApp) throws {
        self.app = app
        var configuration = Realm.Configuration()
        configuration.objectTypes = Self.classes
        let file = OpenFile(path: replica.path, replica: replica)
        realm = Realm(core: try RealmCore(configuration: configuration, file: file, scheduler: .task(0), floats: true))
    }

    // MARK: Writing

    /// A transaction of some changes of the kinds that devices without objects make.
    /// - Parameters:
    ///   - open: the classes that are subscribed to.
    ///   - wrote: told of every object that is touched, with the fields.
    func write(_ open: [ObjectType], _ random: inout SplitMix64, wrote: (ObjectKey, [String]) -> Void) throws {
        realm.beginWrite()
        for _ in 0...random.below(4) {
            let type = random.pick(open)
            let key = OracleApp.key(random.below(12), type)
            let fields = change(type, key, &random)
            OracleTests.trace("an object \(type.name) \(key) is changed: \(fields.map { $0.joined(separator: " ") } ?? "deleted")")
            wrote(ObjectKey(type: type.name, key: key), fields ?? [])
        }
        if random.chance(5) { realm.cancelWrite() } else { try realm.commitWrite() }
    }

    /// - Returns: the fields that it has written; nil: it deleted.
    private func change(_ type: ObjectType, _ key: Value, _ random: inout SplitMix64) -> [String]? {
        let object = realm.dynamicObject(ofType: type.name, forPrimaryKey: plain(key))
        switch random.below(10) {
        case 0:
            if let object { realm.delete(object) }
            return nil
        case 1...3:
            let given = type.properties.dropFirst().filter { $0.name == "zone" || random.chance(70) }
            var values: [String: Any] = ["_id": plain(key)]
            for property in given { values[property.name] = any(app.value(property, &random), property) }
            realm.dynamicCreate(type.name, value: values, update: random.chance(50) ? .modified : .all)
            return given.map(\.name)
        case 4: return count(type, key, Int(random.below(7)) - 3)
        case 5, 6: return edit(type, key, &random)
        default:
            let property = type.properties[1 + random.below(type.properties.count - 1)]
            object?.setValue(any(app.value(property, &random), property), forKey: property.name)
            return [property.name]
        }
    }

    private func alpha(_ key: Value) -> Alpha? { realm.object(ofType: Alpha.self, forPrimaryKey: plain(key)) }
    private func beta(_ key: Value) -> Beta? { realm.object(ofType: Beta.self, forPrimaryKey: plain(key)) }

    private func count(_ type: ObjectType, _ key: Value, _ amount: Int) -> [String] {
        guard type.name == "Alpha" else {
            beta(key)?.increment(\.other, by: amount)
            return ["other"]
        }
        alpha(key)?.increment(\.number, by: amount)
        return ["number"]
    }

    /// Changes inside of a value, so that what others change beside it stays.
    private func edit(_ type: ObjectType, _ key: Value, _ random: inout SplitMix64) -> [String] {
        if type.name == "Beta" {
            guard let beta = beta(key) else { return [] }
            if random.chance(50) { return edit(beta.place, &random) }
            edit(beta.weights, &random) { $0.chance(25) ? nil : $0.pick(Samples.doubles) }
            return ["weights"]
        }
        guard let alpha = alpha(key) else { return [] }
        switch random.below(4) {
        case 0: edit(alpha.tags, &random) { $0.pick(Samples.texts) }
        case 1:
            let member = Int(random.pick(Samples.ints))
            if random.chance(60) { alpha.scores.insert(member) } else { alpha.scores.remove(member) }
            return ["scores"]
        case 2:
            let name = random.pick(["a", "é", "z"])
            alpha.extra[name] = random.chance(30) ? nil : random.pick(Samples.texts)
            return ["extra"]
        default: return edit(alpha.place, &random)
        }
        return ["tags"]
    }

    private func edit(_ place: Place?, _ random: inout SplitMix64) -> [String] {
        guard let place else { return [] }
        switch random.below(3) {
        case 0: place.x = random.chance(25) ? nil : Int(random.pick(Samples.ints))
        case 1: place.label = random.chance(25) ? nil : random.pick(Samples.texts)
        default: edit(place.marks, &random) { Int($0.pick(Samples.ints)) }
        }
        return ["place"]
    }

    private func edit<E: RealmCollectionValue>(
        _ list: List<E>, _ random: inout SplitMix64, _ element: (inout SplitMix64) -> E
    ) {
        let at = random.below(max(list.count, 1))
        switch list.isEmpty ? 0 : random.below(10) {
        case 0...3: list.insert(element(&random), at: random.below(list.count + 1))
        case 4, 5: list.remove(at: at)
        case 6, 7: list[at] = element(&random)
        case 8: list.move(from: at, to: random.below(list.count))
        default: list.removeAll()
        }
    }

    // MARK: Values as apps have them

    private func any(_ value: Value, _ property: SluiceCore.Property) -> Any {
        switch (property.type, value) {
        case (_, .null): return NSNull()
        case (.link(let name), _):
            return realm.dynamicObject(ofType: name, forPrimaryKey: plain(value)).flatMap { _ in
                name == "Alpha" ? alpha(value) as Any? : beta(value) as Any?
            } ?? NSNull()
        case (.embedded, .dictionary(let fields)): return Place(value: fields.mapValues { plain($0) })
        case (.mixed, _): return AnyRealmValue(scalar: value)
        default: return plain(value)
        }
    }

    private func plain(_ value: Value) -> Any {
        switch value {
        case .bool(let v): v
        case .int(let v): Int(v)
        case .float(let v): v
        case .double(let v): v
        case .string(let v): v
        case .decimal(let v): SluiceSDK.Decimal128(v)
        case .objectId(let v): ObjectId(v)
        case .binary(let v): Data(v)
        case .timestamp(let v): Date(v)
        case .uuid(let v): UUID(v)
        case .list(let v): v.map { plain($0) }
        case .dictionary(let v): v.mapValues { plain($0) }
        default: NSNull()
        }
    }

    // MARK: Reading

    /// Holds what the objects say against the rows of the file.
    func expect(_ rows: [String: [Value: [String: Value]]], _ comment: String) {
        realm.refresh()
        let alphas = realm.objects(Alpha.self).map { alpha in
            Shown(
                key: .string(alpha._id), place: alpha.place,
                fields: [
                    "zone": .string(alpha.zone), "number": alpha.number.map { .int(Int64($0)) } ?? .null,
                    "name": alpha.name.map { .string($0) } ?? .null, "tags": .list(alpha.tags.map { .string($0) }),
                    "scores": Value.set(alpha.scores.map { .int(Int64($0)) }),
                    "extra": .dictionary(Dictionary(uniqueKeysWithValues: alpha.extra.map { ($0.key, .string($0.value)) })),
                ])
        }
        let betas = realm.objects(Beta.self).map { beta in
            Shown(
                key: .objectId(beta._id.bytes), place: beta.place,
                fields: [
                    "zone": .string(beta.zone), "other": beta.other.map { .int(Int64($0)) } ?? .null,
                    "price": beta.price.map { .decimal($0.bits) } ?? .null, "data": beta.data.map { .binary(Array($0)) } ?? .null,
                    "weights": .list(beta.weights.map { $0.map { .double($0) } ?? .null }),
                ])
        }
        expect(Array(alphas), rows["Alpha"] ?? [:], "\(comment): Alpha")
        expect(Array(betas), rows["Beta"] ?? [:], "\(comment): Beta")
    }

    private struct Shown {
        var key: Value
        var place: Place?
        var fields: [String: Value]
    }

    private func expect(_ objects: [Shown], _ rows: [Value: [String: Value]], _ comment: String) {
        #expect(objects.count == rows.count && objects.allSatisfy { rows[$0.key] != nil }, "\(comment)")
        for object in objects {
            guard var row = rows[object.key] else { continue }
            if case .list(let members)? = row["scores"] { row["scores"] = Value.set(members) }
            for (name, value) in object.fields {
                let stored = row[name] ?? .null
                // NaN is NaN here.
                #expect(stored == value || "\(stored)" == "\(value)", "\(comment) \(object.key): \(name)")
            }
            guard case .dictionary(let place)? = row["place"] else {
                #expect(object.place == nil, "\(comment) \(object.key)")
                continue
            }
            #expect(place["x"] ?? .null == object.place?.x.map { .int(Int64($0)) } ?? .null, "\(comment) \(object.key)")
            #expect(place["label"] ?? .null == object.place?.label.map { .string($0) } ?? .null, "\(comment) \(object.key)")
            let marks = (object.place?.marks).map { Array($0).map { Value.int(Int64($0)) } } ?? []
            #expect(place["marks"] ?? .list([]) == .list(marks), "\(comment) \(object.key)")
        }
    }
}
