import RealmTestSupport
import SluiceCore
import SluicePorts
import SluiceRealm
import TestSupport

/// A place in an object, with its type, and the instructions that a Realm SDK writes for its changes.
struct OracleRealmPlace {
    let path: RealmPath
    /// The property, or the field of an embedded object on the way.
    let holder: Property
    let type: PropertyType
    let collection: CollectionKind
    /// `true` for an element or entry of the holder's collection or container.
    private let isElement: Bool

    init(_ object: ObjectKey, _ property: Property) { self.init(RealmPath(object, property.name), property) }

    private init(_ path: RealmPath, _ holder: Property, isElement: Bool = false) {
        (self.path, self.holder, self.isElement) = (path, holder, isElement)
        (type, collection) = (holder.type, isElement ? .none : holder.collection)
    }

    /// The place of an element or entry.
    func inner(_ step: RealmStep) -> OracleRealmPlace {
        OracleRealmPlace(RealmPath(path.object, path.field, path.steps + [step]), holder, isElement: true)
    }

    /// The place of a field of an embedded object.
    func field(_ property: Property) -> OracleRealmPlace {
        OracleRealmPlace(RealmPath(path.object, path.field, path.steps + [.key(property.name)]), property)
    }

    // MARK: Values

    /// Returns the instructions that create an object.
    ///
    /// Each mixed property first gets a dictionary, as docs/realm-sdks.md advises: without it, realm-core ends the process of an app that
    /// deleted all objects of the class before.
    static func create(_ object: ObjectKey, _ type: ObjectType) -> [RealmInstruction] {
        let mixed = type.properties.filter { $0.type == .mixed && $0.collection == .none }.map { RealmPath(object, $0.name) }
        return [.createObject(object)] + mixed.flatMap { [.update($0, .container(.dictionary)), .update($0, .value(.null))] }
    }

    private func payload(_ value: Value) -> RealmPayload {
        switch (type, value) {
        case (_, .null): .value(.null)
        case (.link(let target), _): .value(.link(type: target, key: value))
        case (.embedded, .dictionary): .container(.object)
        case (.mixed, .dictionary): .container(.dictionary)
        case (.mixed, .list): .container(.list)
        default: .value(value)
        }
    }

    /// Returns the instructions that give a value to the place, which is empty.
    func fill(_ value: Value) -> [RealmInstruction] {
        switch (collection, value) {
        case (.list, .list(let elements)): elements.enumerated().flatMap { insert($0.element, at: $0.offset, size: $0.offset) }
        case (.set, .list(let members)): members.map { .setInsert(path, payload($0)) }
        case (.dictionary, .dictionary(let entries)): entries.sorted { $0.key < $1.key }.flatMap { inner(.key($0.key)).fill($0.value) }
        default: [.update(path, payload(value))] + inside(value)
        }
    }

    /// Returns the instructions that fill a container that the place has just become.
    private func inside(_ value: Value) -> [RealmInstruction] {
        switch (type, value) {
        case (.embedded, .dictionary(let fields)):
            OracleApp.place.properties.flatMap { field in
                let value = fields[field.name] ?? field.emptyValue
                return value == field.emptyValue ? [] : self.field(field).fill(value)
            }
        case (.mixed, .dictionary(let entries)): entries.sorted { $0.key < $1.key }.flatMap { inner(.key($0.key)).fill($0.value) }
        case (.mixed, .list(let elements)): elements.enumerated().flatMap { insert($0.element, at: $0.offset, size: $0.offset) }
        default: []
        }
    }

    private func insert(_ value: Value, at index: Int, size: Int) -> [RealmInstruction] {
        [.arrayInsert(path, at: index, payload(value), priorSize: size)] + inner(.index(index)).inside(value)
    }

    /// Returns the instructions that empty the place. A scalar needs none.
    private func empty(_ value: Value) -> [RealmInstruction] {
        switch (collection, value) {
        case (.none, .list), (.none, .dictionary): [.update(path, .value(.null))]
        case (.none, _), (_, .list([])): []
        default: [.clear(path, collection)]
        }
    }

    /// Returns the instructions that replace a value.
    func replace(_ old: Value, by new: Value) -> [RealmInstruction] { empty(old) + fill(new) }

    // MARK: Edits

    /// Draws a value for the place. A mixed one can have lists and dictionaries of any values.
    func draw(_ app: OracleApp, _ random: inout SplitMix64) -> Value {
        if type == .mixed { return mixed(app, &random, depth: path.steps.count) }
        return isElement ? app.element(holder, &random, isElement: true) : app.value(holder, &random)
    }

    private func mixed(_ app: OracleApp, _ random: inout SplitMix64, depth: Int) -> Value {
        guard depth < 3, random.chance(35) else { return app.element(holder, &random) }
        if random.chance(50) { return .list((0..<random.below(3)).map { _ in mixed(app, &random, depth: depth + 1) }) }
        let keys = ["a", "é"].filter { _ in random.chance(60) }
        return .dictionary(Dictionary(uniqueKeysWithValues: keys.map { ($0, mixed(app, &random, depth: depth + 1)) }))
    }

    /// Returns the instructions of a change inside of a value, so that what others change beside it stays.
    func edit(_ value: Value, _ app: OracleApp, _ random: inout SplitMix64) -> [RealmInstruction] {
        switch (collection, type, value) {
        case (.list, _, .list(let elements)), (.none, .mixed, .list(let elements)): return edit(elements, app, &random)
        case (.set, _, _):
            let member = payload(app.element(holder, &random, isElement: true))
            return [random.chance(60) ? .setInsert(path, member) : .setErase(path, member)]
        case (.dictionary, _, .dictionary(let entries)), (.none, .mixed, .dictionary(let entries)):
            let key = random.pick(["a", "é", "z"])
            guard let entry = entries[key] else { return inner(.key(key)).fill(inner(.key(key)).draw(app, &random)) }
            if random.chance(30) { return [.update(inner(.key(key)).path, .erased)] }
            return inner(.key(key)).edit(entry, app, &random)
        case (.none, .embedded, .dictionary(let fields)):
            let field = random.pick(OracleApp.place.properties)
            return self.field(field).edit(fields[field.name] ?? field.emptyValue, app, &random)
        default: return replace(value, by: draw(app, &random))
        }
    }

    private func edit(_ elements: [Value], _ app: OracleApp, _ random: inout SplitMix64) -> [RealmInstruction] {
        let (size, at) = (elements.count, random.below(max(elements.count, 1)))
        let element = inner(.index(at)).draw(app, &random)
        switch size == 0 ? 0 : random.below(10) {
        case 0...3: return insert(element, at: random.below(size + 1), size: size)
        case 4, 5: return [.arrayErase(path, at: at, priorSize: size)]
        case 6, 7:
            if collection == .none, elements[at].isContainer { return inner(.index(at)).edit(elements[at], app, &random) }
            return [.arrayUpdate(path, at: at, payload(element), priorSize: size)] + inner(.index(at)).inside(element)
        case 8:
            let to = random.below(size)
            return to == at ? [] : [.arrayMove(path, from: at, to: to, priorSize: size)]
        default: return [.clear(path, .list)]
        }
    }
}

extension Value {
    fileprivate var isContainer: Bool {
        switch self {
        case .list, .dictionary: true
        default: false
        }
    }
}

/// The own changes of a client whose file was replaced, to be written into the new one.
struct OracleRecovery {
    private let schema: Schema
    private let old: [ObjectKey: [String: Value]]
    private var created: Set<ObjectKey> = []
    private var erased: Set<ObjectKey> = []
    private var touched: [ObjectKey: Set<String>] = [:]

    /// - Parameter file: The file that is replaced. Its values are recovered that the server has not confirmed.
    init(_ file: RealmTestFile, _ schema: Schema) throws {
        (self.schema, old) = (schema, file.objects)
        for instruction in try file.pending(after: file.progress.upload.clientVersion) {
            switch instruction {
            case .createObject(let object): created.insert(object)
            case .eraseObject(let object):
                erased.insert(object)
                created.remove(object)
                touched[object] = nil
            default: if let path = instruction.path { touched[path.object, default: []].insert(path.field) }
            }
        }
    }

    /// Returns the instructions for a file with objects.
    func instructions(_ objects: [ObjectKey: [String: Value]]) -> [RealmInstruction] {
        var (objects, instructions) = (objects, [RealmInstruction]())
        for object in erased where objects.removeValue(forKey: object) != nil { instructions.append(.eraseObject(object)) }
        for object in created where objects[object] == nil && old[object] != nil {
            guard let type = schema[object.type] else { continue }
            objects[object] = RealmModel.empty(type)
            instructions += OracleRealmPlace.create(object, type)
        }
        for (object, names) in touched {
            guard let have = objects[object], let want = old[object], let type = schema[object.type] else { continue }
            for property in type.properties where names.contains(property.name) {
                let (before, after) = (have[property.name] ?? .null, want[property.name] ?? .null)
                if before != after { instructions += OracleRealmPlace(object, property).replace(before, by: after) }
            }
        }
        return instructions
    }
}
