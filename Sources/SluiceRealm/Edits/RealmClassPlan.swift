import SluiceCore

/// The forms in which the rows of a class are written. One plan serves all rows.
package final class RealmClassPlan: Sendable {
    /// The form of a property.
    enum Form: Sendable {
        case primaryKey
        /// A scalar.
        case scalar
        /// A link to objects of a class.
        case link(String)
        /// A mixed value.
        case mixed
        /// A list of scalars.
        case list
        /// A list of links to objects of a class.
        case links(String)
        /// Any other property. Its values are written by instructions.
        case general
    }

    /// The index of the class in its schema.
    let index: Int
    let type: ObjectType
    /// The forms by property index.
    let forms: [Form]
    /// The indices of the properties whose own value may be a list.
    let lists: [Int]
    /// The hash of the class's name, from which those of its objects begin.
    let start: UInt64

    init(_ type: ObjectType, at index: Int) {
        (self.type, self.index) = (type, index)
        start = ClientModel.start(of: type.name)
        forms = type.properties.enumerated().map { $0 == type.primaryKey ? .primaryKey : Form($1) }
        lists = type.properties.indices.filter { type.properties[$0].mayBeList && $0 != type.primaryKey }
    }
}

extension RealmClassPlan.Form {
    fileprivate init(_ property: Property) {
        switch (property.collection, property.type) {
        case (.set, _), (.dictionary, _), (_, .embedded): self = .general
        case (.none, .mixed): self = .mixed
        case (.none, .link(let target)): self = .link(target)
        case (.none, _): self = .scalar
        // Elements may be containers.
        case (.list, .mixed): self = .general
        case (.list, .link(let target)): self = .links(target)
        case (.list, _): self = .list
        }
    }

    /// Returns the estimated bytes of a property's value in an object that enters; nil if it needs instructions.
    /// - Parameter place: The bytes of the property's path.
    func cost(entering value: Value?, _ place: Int) -> Int? {
        switch (self, value) {
        case (.primaryKey, _): 0
        case (.general, nil): 0
        case (.general, _), (.scalar, .list), (.scalar, .dictionary), (.link, .list), (.link, .dictionary), (.mixed, .list),
            (.mixed, .dictionary):
            nil
        // An empty dictionary precedes the value.
        case (.mixed, let value): place + 2 + place + (value ?? .null).payloadCost
        case (.scalar, nil), (.scalar, .null), (.link, nil), (.link, .null), (.list, nil), (.list, .null), (.links, nil), (.links, .null): 0
        case (.scalar, let value?): place + value.payloadCost
        case (.link(let target), let key?): place + key.linkCost(to: target)
        case (.list, .list(let elements)): Self.cost(elements, place + RealmStep.indexAndSize) { $0.payloadCost }
        case (.links(let target), .list(let elements)):
            Self.cost(elements, place + RealmStep.indexAndSize) { $0.isNull ? $0.payloadCost : $0.linkCost(to: target) }
        case (.list, _), (.links, _): nil
        }
    }

    /// Returns the estimated bytes of a property's new value in an object that the client holds; nil if it needs instructions.
    /// - Parameter place: The bytes of the property's path.
    func cost(changing value: Value, _ place: Int) -> Int? {
        if value.isContainer { return nil }
        switch self {
        case .primaryKey, .general, .list, .links: return nil
        case .scalar, .mixed: return place + value.payloadCost
        case .link(let target): return place + (value.isNull ? value.payloadCost : value.linkCost(to: target))
        }
    }

    private static func cost(_ elements: [Value], _ place: Int, _ cost: (Value) -> Int) -> Int? {
        var sum = 0
        for element in elements {
            if element.isContainer { return nil }
            sum += place + cost(element)
        }
        return sum
    }
}

extension Property {
    /// `true` if the property's own value may be a list.
    fileprivate var mayBeList: Bool { RealmPlace(self).mayBeList }
}
