package import SluiceCore
package import SluiceMerge

/// The changes that an app made inside a property's value, by the indices and keys that the app sees.
package struct ShownEdit: Hashable, Sendable {
    /// To the container, or to the place itself for `set`; empty: the property's value.
    package var path: [ShownStep]
    package var changes: [Change]

    package enum Change: Hashable, Sendable {
        case set(Value)
        case setElement(Int, Value)
        case insert(Value, at: Int)
        case removeElement(Int)
        /// To an index of the list without the element.
        case move(from: Int, to: Int)
        case setKey(String, Value)
        case removeKey(String)
        case setInsert(Value)
        case setErase(Value)
        case clear(Edit.Container)
        case add(Int64)
    }

    package init(path: [ShownStep] = [], _ changes: [Change]) {
        self.path = path
        self.changes = changes
    }

    /// `true` if the edit replaces the property's whole value.
    package var isWhole: Bool {
        if path.isEmpty, case .set? = changes.first, changes.count == 1 { true } else { false }
    }
}

/// An object's state in the open transaction, with the stable references of the elements in its values.
final class EditedObject {
    private var state: ObjectState
    /// The properties that were edited inside.
    private var open: [String: OpenProperty] = [:]
    private let server: [String: Value]?
    private var hashes: [String: ValueHash] = [:]
    private let type: ObjectType
    private let schema: Schema
    let object: ObjectKey

    /// - Parameter own: the changes of the object that the transaction has made so far.
    init(_ layout: TableLayout, _ object: ObjectKey, own: [ObjectChange], _ local: LocalChanges) throws(SluiceError) {
        type = layout.type
        schema = local.schema
        self.object = object
        let overlaid = try local.overlays.overlaid(layout, key: object.key, own: own)
        server = overlaid.server.row
        state = overlaid.state
    }

    /// The value of a property. O(its elements).
    func value(of name: String) -> Value { open[name]?.current ?? state.values?[name] ?? .null }

    /// The value of an element or entry of a collection. `nil` if there is no such element.
    func value(of property: Property, at step: ShownStep, _ local: LocalChanges) -> Value? {
        opened(property).value(at: step, for: .underWay(by: local.overlays.client))
    }

    private func opened(_ property: Property) -> OpenProperty {
        if let known = open[property.name] { return known }
        let new = state.open(property)
        open[property.name] = new
        return new
    }

    /// Returns the hash of the server's value of a property (`ObjectChange.seen`); nil if the server has no such object.
    func seen(_ name: String) -> ValueHash? {
        guard let server else { return nil }
        if let known = hashes[name] { return known }
        let hash = ValueHash(server[name] ?? .null)
        hashes[name] = hash
        return hash
    }

    /// Converts the app's edit to edits by stable references and applies them in order. Each takes O(log elements) of a list, O(1) of a set
    /// or map.
    func perform(_ edit: ShownEdit, on property: Property, _ local: LocalChanges) throws(SluiceError) -> [Edit] {
        let target = opened(property)
        let context = WriteContext.underWay(by: local.overlays.client)
        var edits: [Edit] = []
        for change in edit.changes {
            for (path, action) in try name(change, edit.path, property, target, context, local) {
                let named = Edit(property.name, path, action)
                try target.perform(named, of: property, by: context)
                edits.append(named)
            }
        }
        return edits
    }

    private func name(
        _ change: ShownEdit.Change, _ path: [ShownStep], _ property: Property, _ target: OpenProperty, _ context: WriteContext,
        _ local: LocalChanges
    ) throws(SluiceError) -> [([EditStep], Edit.Action)] {
        let inner = path.isEmpty ? nil : target.place(path, for: context)
        if inner == nil, !path.isEmpty {
            throw SluiceError(.internalError, "A change of \(type.name).\(property.name) leads to a place that does not exist.")
        }
        let steps = inner?.path ?? []
        func reference(_ index: Int) -> ElementRef? {
            if let inner { inner.element(index) } else { target.element(index, for: context) }
        }
        func element(_ index: Int) -> [EditStep] { reference(index).map { steps + [.element($0)] } ?? steps }
        switch change {
        case .set(let value): return put(value, steps, isObject: schema.isObject(property, path))
        case .setElement(let index, let value): return [(element(index), .set(value))]
        case .insert(let value, let index): return [(steps, .insert(value, after: reference(index - 1), tag: local.nextTag()))]
        case .removeElement(let index): return [(element(index), .remove)]
        case .move(let from, let to):
            // `to` is an index of the list without the element; behind `from`, the full list has the predecessor one further.
            let before = to - 1 < from ? to - 1 : to
            return [(element(from), .move(after: reference(before), tag: local.nextTag()))]
        case .setKey(let key, let value):
            return put(value, steps + [.key(key)], isObject: schema.isObject(property, path + [.key(key)]))
        case .removeKey(let key): return [(steps + [.key(key)], .remove)]
        case .setInsert(let value): return [(steps, .setInsert(value))]
        case .setErase(let value): return [(steps, .setErase(value))]
        case .clear(let container): return [(steps, .clear(container))]
        case .add(let amount): return [(steps, .add(amount))]
        }
    }

    /// Sets an embedded object field by field, so that it merges with a concurrent one of another device.
    private func put(_ value: Value, _ path: [EditStep], isObject: Bool) -> [([EditStep], Edit.Action)] {
        guard isObject, case .dictionary(let fields) = value else { return [(path, .set(value))] }
        return [(path, .become(.object))]
            + fields.sorted { $0.key < $1.key }.map { (path + [.key($0.key)], .set($0.value)) }
    }
}

extension Schema {
    /// Returns `true` if the path leads to an embedded object that is not a list element.
    fileprivate func isObject(_ property: Property, _ path: [ShownStep]) -> Bool {
        var place: (type: PropertyType, collection: CollectionKind) = (property.type, property.collection)
        for step in path {
            switch (place.collection, step, place.type) {
            case (.list, .index, _), (.dictionary, .key, _): place.collection = .none
            case (.none, .key(let name), .embedded(let type)):
                guard let field = self[type]?[name] else { return false }
                place = (field.type, field.collection)
            default: return false
            }
        }
        if case .index? = path.last { return false }
        if case .embedded = place.type { return place.collection == .none }
        return false
    }
}
