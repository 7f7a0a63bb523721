import SluiceCore
import SluiceQuery
import SluiceReplica

/// Reads the elements of results from their source, in order. Keeps no state between reads.
struct ElementReader {
    struct Elements {
        /// The primary keys of objects, or indices into `values` for other elements. In order.
        var keys: [Value] = []
        /// All elements of the collection, if they are not objects.
        var values: [Value] = []
        var steps: [_Place.Step] = []
        /// The number of elements that were counted before a read failed. The count stays the same within one generation.
        var lost = 0

        func isLost(_ position: Int) -> Bool { position >= 0 && position < lost }

        /// The index of an element that is not an object.
        func index(_ key: Value) -> Int { if case .int(let index) = key { Int(index) } else { 0 } }
        func value(_ key: Value) -> Value { values[index(key)] }
    }

    let core: RealmCore
    let origin: CollectionOrigin
    let kind: ElementKind
    let query: ReplicaQuery
    /// The part of the condition that the query language cannot express. It is evaluated on the elements that the query selects.
    let rest: [ElementCondition]

    /// Reads the elements from the source.
    func read(_ store: RowStore) throws(SluiceError) -> Elements {
        var elements = base()
        switch (kind, origin) {
        case (.objects, .table) where rest.isEmpty: elements.keys = try query.run(on: store)
        case (.objects, .table):
            // The remaining condition is evaluated before DISTINCT, which keeps the first of the matching elements only.
            elements.keys = try kind.query(core).narrowed(by: query.text).run(on: store)
            elements.keys = try query.run(over: try matching(elements, store), on: store)
        case (.objects, _): elements.keys = try query.run(over: try matching(elements, store), on: store)
        case (.embedded, _), (.values, _):
            // Nothing to select or sort.
            if query.isWhole && rest.isEmpty { break }
            let keys = try matching(elements, store)
            let chosen = try query.run(over: rows(keys.map { elements.value($0) }), on: store)
            // The query ran over rows in memory and returns their indices.
            elements.keys = chosen.map { keys[$0] }
        }
        return elements
    }

    /// The keys of the elements that meet the remaining condition.
    private func matching(_ elements: Elements, _ store: RowStore) throws(SluiceError) -> [Value] {
        if rest.isEmpty { return elements.keys }
        var matching: [Value] = []
        for key in elements.keys where try holds(key, elements, store) { matching.append(key) }
        return matching
    }

    /// The candidates of a collection, or of inverse links. Empty for a class, whose candidates the query reads itself.
    func base() -> Elements {
        var elements = Elements()
        switch origin {
        case .table: break
        case .links(let owner, let type, let property):
            elements.keys = core.reading.origins(of: owner, type: type, property: property)
        case .place(let place):
            var values: [Value] = []
            switch place.value {
            case .list(let list): (values, elements.steps) = (list, list.indices.map { .index($0) })
            case .dictionary(let entries):
                // A map has no order. Sorted by key, the positions agree between reads.
                let sorted = entries.sorted { $0.key < $1.key }
                (values, elements.steps) = (sorted.map(\.value), sorted.map { .key($0.key) })
            default: break
            }
            if case .objects = kind {
                // An entry of a map without an object is no element.
                elements.keys = values.filter { !$0.isNull }
            } else {
                elements.values = values
                elements.keys = values.indices.map { .int(Int64($0)) }
            }
        }
        return elements
    }

    /// The elements as rows of the query's type. They are values or embedded objects.
    private func rows(_ values: [Value]) -> [Row] {
        values.map { value in
            guard case .embedded(let schema) = kind else { return Row([value]) }
            // A null element has no fields.
            guard case .dictionary(let fields) = value else { return Row(schema.properties.prefix(schema.storedCount).map { _ in nil }) }
            return Row(query.bound.type.properties.map { fields[$0.name] })
        }
    }

    /// `true` if an element meets the remaining condition.
    private func holds(_ key: Value, _ elements: Elements, _ store: RowStore) throws(SluiceError) -> Bool {
        // The condition cannot throw from within: the error is carried past it.
        var failure: SluiceError?
        let element = untyped(key, elements)
        let holds = rest.allSatisfy { condition in
            condition.holds(for: element) { part in
                do throws(SluiceError) {
                    let query = try kind.query(core).narrowed(by: part.canonicalText)
                    if case .objects = kind { return try query.holds(for: key, on: store) }
                    return try !query.run(over: rows([elements.value(key)]), on: store).isEmpty
                } catch {
                    failure = error
                    return false
                }
            }
        }
        if let failure { throw failure }
        return holds
    }

    /// An element without its static type.
    private func untyped(_ key: Value, _ elements: Elements) -> Any? {
        switch kind {
        case .objects(let type): return core.object(core.classes.schema(type).objectClass, type: type, key: key)
        case .embedded(let schema):
            guard case .place(let place) = origin else { return nil }
            let step = elements.steps[elements.index(key)]
            return (schema.objectClass as? EmbeddedObject.Type)?.accessor(at: _Place(parent: place, step: step))
        case .values: return elements.value(key).plain
        }
    }
}
