import SluiceCore

/// A place in an object that can be a list.
struct RealmListPlace: Hashable {
    var object: ObjectKey
    var property: String
    var path: [EditStep]

    init<Lists>(_ target: RealmEditTranslator<Lists>.Target) {
        object = target.object
        property = target.property.name
        path = target.path
    }
}

/// The names of list elements, with the edits of one changeset so far.
///
/// A list with more than `mostElements` is left to the merge, since each edit would copy its names.
struct RealmListNames {
    private struct Object {
        /// The elements of lists by property and path.
        var known: [String: [[EditStep]: [ElementRef]]] = [:]
        /// The properties with new values. The source does not know the lists inside.
        var replaced: Set<String> = []
        /// `true` if the changeset creates or deletes the object.
        var isReplaced = false
    }

    private var objects: [ObjectKey: Object] = [:]

    static let mostElements = 1_024
    /// The longest key of a dictionary on the way to a named list, bytes. Swift normalises longer ones at a high cost.
    private static let keyBytes = 256

    /// The elements of a list that the changeset has edited.
    subscript(_ place: RealmListPlace) -> [ElementRef]? { objects[place.object]?.known[place.property]?[place.path] }

    /// `true` if lists at the place may have names.
    func permits(_ place: RealmListPlace) -> Bool {
        place.path.allSatisfy { if case .key(let key) = $0 { key.utf8.count <= Self.keyBytes } else { true } }
    }

    /// `true` if the source may be asked for the list.
    func isOriginal(_ place: RealmListPlace) -> Bool {
        guard let object = objects[place.object] else { return true }
        return !object.isReplaced && !object.replaced.contains(place.property)
    }

    mutating func set(_ elements: [ElementRef], _ place: RealmListPlace) {
        if elements.count > Self.mostElements { return replace(place) }
        guard permits(place) else { return }
        objects[place.object, default: Object()].known[place.property, default: [:]][place.path] = elements
    }

    /// Forgets the lists of a property, one of whose containers has a new value.
    mutating func replace(_ place: RealmListPlace) {
        objects[place.object, default: Object()].known[place.property] = nil
        objects[place.object, default: Object()].replaced.insert(place.property)
    }

    /// Forgets the lists of an object that is created or deleted.
    mutating func replace(_ object: ObjectKey) {
        objects[object] = Object(isReplaced: true)
    }
}

extension RealmEditTranslator {
    /// Forgets the lists that a new value of the place removes.
    mutating func replace(_ target: Target) {
        let place = target.place
        guard place.isMixed || place.embedded != nil || place.collection != .none else { return }
        names.replace(RealmListPlace(target))
    }

    /// Returns the elements of a list as the client sees it now. Nil if they are unknown.
    private func elements(_ place: RealmListPlace) -> [ElementRef]? {
        guard names.permits(place) else { return nil }
        if let elements = names[place] { return elements }
        guard names.isOriginal(place) else { return nil }
        guard let elements = lists.elements(of: place.object, property: place.property, path: place.path) else { return nil }
        return elements.count > RealmListNames.mostElements ? nil : elements
    }

    /// Returns the name of an element of the target's list.
    func element(_ index: Int, in target: Target) throws(SluiceError) -> ElementRef {
        guard let elements = elements(RealmListPlace(target)) else { return .seen(index) }
        guard elements.indices.contains(index) else { throw Self.outside(index, elements.count, target) }
        return elements[index]
    }

    private static func outside(_ index: Int, _ count: Int, _ target: Target) -> SluiceError {
        SluiceError(.badChangeset, "A change names element \(index) of '\(target.holder.name)', a list of \(count).")
    }

    /// A list in the middle of an edit.
    private struct OpenTarget {
        var target: Target
        /// Nil if the elements are unknown.
        var elements: [ElementRef]?
        let priorSize: Int

        /// The size for the merge to check. It is checked already if the elements are known.
        var unchecked: Int? { elements == nil ? priorSize : nil }

        func name(_ index: Int) -> ElementRef { elements.map { $0[index] } ?? .seen(index) }

        func element(_ index: Int) -> Target {
            var inner = target
            inner.path.append(.element(name(index)))
            return inner
        }
    }

    /// - Throws: `badChangeset` if the place is no list, or if the client saw another number of elements.
    private func open(_ path: RealmPath, priorSize: Int) throws(SluiceError) -> OpenTarget {
        let target = try target(path)
        guard target.place.mayBeList else {
            throw SluiceError(
                .badChangeset, "A change of a list's element concerns '\(target.holder.name)', which is \(target.holder.typeText).")
        }
        let elements = elements(RealmListPlace(target))
        if let elements, elements.count != priorSize {
            throw SluiceError(
                .badChangeset,
                "A change concerns '\(target.holder.name)' as a list of \(priorSize), but it has \(elements.count) elements for its writer."
            )
        }
        return OpenTarget(target: target, elements: elements, priorSize: priorSize)
    }

    private mutating func close(_ list: OpenTarget) { if let elements = list.elements { names.set(elements, RealmListPlace(list.target)) } }

    // MARK: Instructions

    mutating func applyToList(_ instruction: RealmInstruction) throws(SluiceError) {
        switch instruction {
        case .arrayInsert(let path, let index, let payload, let size):
            var list = try open(path, priorSize: size)
            try insert(payload, at: index, into: &list)
            close(list)
        case .arrayUpdate(let path, let index, let payload, let size):
            try update(try open(path, priorSize: size), index, payload)
        case .arrayMove(let path, let from, let to, let size):
            var list = try open(path, priorSize: size)
            try move(from, to, in: &list)
            close(list)
        case .arrayErase(let path, let index, let size):
            var list = try open(path, priorSize: size)
            guard index < size else { throw Self.outside(index, size, list.target) }
            edit(list.element(index), .remove, priorSize: list.unchecked)
            list.elements?.remove(at: index)
            close(list)
        default: break
        }
    }

    private mutating func insert(_ payload: RealmPayload, at index: Int, into list: inout OpenTarget) throws(SluiceError) {
        guard index <= list.priorSize else { throw Self.outside(index, list.priorSize, list.target) }
        let value = try content(payload, in: list.target)
        let tag = takeTag()
        edit(list.target, .insert(value, after: index == 0 ? nil : list.name(index - 1), tag: tag), priorSize: list.unchecked)
        list.elements?.insert(.own(tag, index: index, ValueHash(value)), at: index)
    }

    /// Returns the value of a new element. Its content follows in further instructions.
    private func content(_ payload: RealmPayload, in list: Target) throws(SluiceError) -> Value {
        let place = elementPlace(list)
        switch payload {
        case .value(let value): return try typing.value(value, at: place, of: list.holder)
        case .container(let container):
            var element = list
            element.place = place
            try check(container, element)
            return emptyValue(container, place)
        case .erased: throw SluiceError(.badChangeset, "A change inserts nothing into '\(list.holder.name)'.")
        }
    }

    /// Returns an empty container. An embedded object has the empty values of all its fields.
    private func emptyValue(_ container: Edit.Container, _ place: RealmPlace) -> Value {
        switch container {
        case .list, .set: return .list([])
        case .dictionary: return .dictionary([:])
        case .object:
            let fields = place.embedded.flatMap { typing.schema[$0]?.properties } ?? []
            return .dictionary(Dictionary(fields.map { ($0.name, $0.emptyValue) }, uniquingKeysWith: { first, _ in first }))
        }
    }

    private func elementPlace(_ list: Target) -> RealmPlace { list.place.isMixed ? .mixed : .element(of: list.holder) }

    private mutating func update(_ list: OpenTarget, _ index: Int, _ payload: RealmPayload) throws(SluiceError) {
        guard index < list.priorSize else { throw Self.outside(index, list.priorSize, list.target) }
        var element = list.element(index)
        element.place = elementPlace(list.target)
        switch payload {
        case .value(let value):
            let value = try typing.value(value, at: element.place, of: element.holder)
            replace(element)
            edit(element, .set(value), priorSize: list.unchecked)
        case .container(let container):
            try check(container, element)
            if element.place.isMixed { replace(element) }
            edit(element, .become(container), priorSize: list.unchecked)
            makeCollections(element)
        case .erased: throw SluiceError(.badChangeset, "A change removes element \(index) of '\(element.holder.name)' as a key.")
        }
    }

    /// Moves an element so that it has the index `to` among the others afterwards.
    private mutating func move(_ from: Int, _ to: Int, in list: inout OpenTarget) throws(SluiceError) {
        guard from < list.priorSize else { throw Self.outside(from, list.priorSize, list.target) }
        guard to < list.priorSize, to != from else {
            throw SluiceError(.badChangeset, "A change moves element \(from) of '\(list.target.holder.name)' to \(to).")
        }
        // The element before the new place, by its index before the move.
        let before = to - 1 < from ? to - 1 : to
        let after = to == 0 ? nil : list.name(before)
        edit(list.element(from), .move(after: after, tag: takeTag()), priorSize: list.unchecked)
        if let moved = list.elements?.remove(at: from) { list.elements?.insert(moved, at: to) }
    }
}
