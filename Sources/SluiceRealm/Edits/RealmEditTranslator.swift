package import SluiceCore
import SluiceValues

/// The names of list elements as a client saw them before its changeset.
package protocol RealmListSource {
    /// Returns the elements of a list in the client's order. Nil if they are unknown: the merge then reads the client's indices in the list
    /// of the changeset's base with all changes of the client (`ElementRef.seen`).
    func elements(of object: ObjectKey, property: String, path: [EditStep]) -> [ElementRef]?
}

/// The source that knows no list.
package struct UnknownLists: RealmListSource {
    package init() {}
    package func elements(of object: ObjectKey, property: String, path: [EditStep]) -> [ElementRef]? { nil }
}

/// Translates the instructions of one changeset into changes of objects.
///
/// Values are checked against the app's schema. Permissions, views and conflicts are not: they belong to the merge and the write check.
/// `ObjectChange.seen` stays empty.
package struct RealmEditTranslator<Lists: RealmListSource> {
    let typing: RealmTyping
    let lists: Lists
    /// The changes so far, in the order in which they began.
    package private(set) var changes: [ObjectChange] = []
    /// The index of each object's last change.
    private var last: [ObjectKey: Int] = [:]
    private var nextTag: UInt64
    /// The lists of this changeset.
    var names = RealmListNames()

    /// Instructions whose tags a changeset may use.
    private static var tagsPerChangeset: UInt64 { UInt64(RealmChangesetReader.mostInstructions) }

    /// - Parameter version: The client's version of the changeset. Tags of list elements follow from it, so a repeated upload has the same.
    package init(schema: Schema, lists: Lists, version: UInt64) {
        typing = RealmTyping(schema: schema)
        self.lists = lists
        nextTag = Self.firstTag(of: version)
    }

    /// Returns the lowest tag of a changeset. Its other tags are below that of the next version.
    package static func firstTag(of version: UInt64) -> UInt64 { version &* tagsPerChangeset }

    /// Returns the changes of a changeset. Declarations of classes and properties are left out: `RealmSchemaCheck` reads them.
    /// - Throws: `unknownType`, `unknownProperty` or `wrongValueType` for content that the app's schema does not have. `badChangeset` for a
    ///   contradiction.
    package static func changes(
        of instructions: some Sequence<RealmInstruction>, schema: Schema, lists: Lists, version: UInt64
    ) throws(SluiceError) -> [ObjectChange] {
        var upload = RealmEditTranslator(schema: schema, lists: lists, version: version)
        for instruction in instructions { try upload.apply(instruction) }
        return upload.changes
    }

    /// - Throws: The errors of `changes(of:schema:lists:version:)`.
    package mutating func apply(_ instruction: RealmInstruction) throws(SluiceError) {
        switch instruction {
        case .addTable, .eraseTable, .addColumn, .eraseColumn: break
        case .createObject(let object): try begin(object, .create)
        case .eraseObject(let object): try begin(object, .delete)
        case .update(let path, let payload, let isDefault):
            let target = try target(path)
            try update(target, payload, isDefault: isDefault)
        case .addInteger(let path, let amount):
            let target = try target(path)
            try add(amount, target)
        case .clear(let path, let kind):
            let target = try target(path)
            try clear(target, kind)
        case .setInsert(let path, let payload):
            let target = try target(path)
            edit(target, .setInsert(try member(payload, target)))
        case .setErase(let path, let payload):
            let target = try target(path)
            edit(target, .setErase(try member(payload, target)))
        default: try applyToList(instruction)
        }
    }

    // MARK: Objects

    private mutating func begin(_ object: ObjectKey, _ kind: ObjectChange.Kind) throws(SluiceError) {
        _ = try typing.type(of: object)
        last[object] = changes.count
        changes.append(ObjectChange(object: object, kind: kind))
        names.replace(object)
    }

    /// Changes the object's last change, or a new one.
    private mutating func change(_ object: ObjectKey, _ body: (inout ObjectChange) -> Void) {
        if let index = last[object], changes[index].kind != .delete { return body(&changes[index]) }
        last[object] = changes.count
        changes.append(ObjectChange(object: object, kind: .set))
        body(&changes[changes.count - 1])
    }

    mutating func edit(_ target: Target, _ action: Edit.Action, priorSize: Int? = nil) {
        let edit = Edit(target.property.name, target.path, action, priorSize: priorSize)
        change(target.object) { $0.edits.append(edit) }
    }

    mutating func takeTag() -> UInt64 {
        defer { nextTag &+= 1 }
        return nextTag
    }

    // MARK: Places

    /// A place with the names of the list elements on the way.
    struct Target {
        var object: ObjectKey
        var property: Property
        /// The property itself, or the field of the innermost embedded object on the way.
        var holder: Property
        var path: [EditStep] = []
        var place: RealmPlace
        /// The place that holds the last step.
        var parent: RealmPlace?
    }

    func target(_ path: RealmPath) throws(SluiceError) -> Target {
        let type = try typing.type(of: path.object)
        let property = try typing.property(path.field, of: type)
        var target = Target(object: path.object, property: property, holder: property, place: RealmPlace(property))
        for step in path.steps { try enter(step, &target) }
        return target
    }

    private func enter(_ step: RealmStep, _ target: inout Target) throws(SluiceError) {
        let parent = target.place
        let place = try typing.place(step, in: parent, of: target.holder)
        switch step {
        case .key(let key): target.path.append(.key(key))
        case .index(let index): target.path.append(.element(try element(index, in: target)))
        }
        if let embedded = parent.embedded, case .key(let name) = step, let field = typing.schema[embedded]?[name] { target.holder = field }
        target.place = place
        target.parent = parent
    }

    // MARK: Values

    private mutating func update(_ target: Target, _ payload: RealmPayload, isDefault: Bool) throws(SluiceError) {
        switch payload {
        case .value(let value):
            let value = try typing.value(value, at: target.place, of: target.holder)
            replace(target)
            guard target.path.isEmpty, !target.property.hasRealmInside else { return edit(target, .set(value, isDefault: isDefault)) }
            change(target.object) { $0.set(value, target.property.name, isDefault: isDefault) }
        case .container(let container):
            try check(container, target)
            // A mixed value of another kind loses its content. Which kind the client saw is not known here.
            if target.place.isMixed { replace(target) }
            edit(target, .become(container))
            makeCollections(target)
        case .erased:
            guard target.parent?.collection == .dictionary || target.parent?.isMixed == true, case .key? = target.path.last else {
                throw SluiceError(.badChangeset, "A change removes a key of '\(target.holder.name)', which is no dictionary there.")
            }
            replace(target)
            edit(target, .remove)
        }
    }

    func check(_ container: Edit.Container, _ target: Target) throws(SluiceError) {
        let isPossible = container == .object ? target.place.embedded != nil : target.place.isMixed
        guard isPossible else {
            throw SluiceError(
                .wrongValueType,
                "A change makes a place of '\(target.holder.name)' a container, but it is \(target.holder.typeText).")
        }
    }

    /// Makes the collections of a new embedded object. A client assumes them. Those of an existing object remain.
    mutating func makeCollections(_ target: Target) {
        guard let name = target.place.embedded, let type = typing.schema[name] else { return }
        for field in type.properties {
            guard let container = field.collection.container else { continue }
            var inner = target
            inner.path.append(.key(field.name))
            edit(inner, .become(container))
        }
    }

    private mutating func add(_ amount: Int64, _ target: Target) throws(SluiceError) {
        guard target.place.collection == .none, target.place.type == .int || target.place.isMixed else {
            throw SluiceError(
                .wrongValueType, "A change adds to '\(target.holder.name)', which is \(target.holder.typeText).")
        }
        guard target.path.isEmpty, !target.property.hasRealmInside else { return edit(target, .add(amount)) }
        change(target.object) { $0.counters[target.property.name, default: 0] &+= amount }
    }

    private mutating func clear(_ target: Target, _ kind: CollectionKind) throws(SluiceError) {
        let container = (kind == .none ? target.place.collection : kind).container
        guard let container, target.place.isMixed || target.place.collection.container == container else {
            throw SluiceError(
                .badChangeset, "A change empties '\(target.holder.name)' as a \(kind.word), but it is \(target.holder.typeText).")
        }
        replace(target)
        if container == .list { names.set([], RealmListPlace(target)) }
        edit(target, .clear(container))
    }

    private func member(_ payload: RealmPayload, _ target: Target) throws(SluiceError) -> Value {
        guard target.place.collection == .set || target.place.isMixed, case .value(let value) = payload else {
            throw SluiceError(
                .badChangeset, "A change of a set's member concerns '\(target.holder.name)', which is \(target.holder.typeText).")
        }
        return try typing.value(value, at: target.place.isMixed ? .mixed : .element(of: target.holder), of: target.holder)
    }
}

extension ObjectChange {
    /// Sets a property. An earlier addition of the same transaction is void.
    fileprivate mutating func set(_ value: Value, _ name: String, isDefault: Bool) {
        values[name] = value
        counters[name] = nil
        if isDefault { defaults.insert(name) } else { defaults.remove(name) }
    }
}

extension CollectionKind {
    fileprivate var container: Edit.Container? {
        switch self {
        case .none: nil
        case .list: .list
        case .set: .set
        case .dictionary: .dictionary
        }
    }
}

extension Property {
    /// `true` if the property's value can have places inside. All its changes are edits, which keep their order.
    var hasRealmInside: Bool {
        switch type {
        case .mixed, .embedded: true
        default: collection != .none
        }
    }
}
