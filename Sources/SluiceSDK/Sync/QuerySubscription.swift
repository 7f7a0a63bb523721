public import Foundation
import SluiceCore
import SluiceQuery

/// A description of a subscription: a class, a query and an optional name.
public struct QuerySubscription<T: Object> {
    public typealias QueryFunction = (Query<T>) -> Query<Bool>

    let name: String?
    /// The canonical query text.
    let text: String

    /// Describes a subscription to all objects of the class.
    public init(name: String? = nil) {
        self.name = name
        text = "TRUEPREDICATE"
    }

    /// Describes a subscription to the objects that match a type-safe query.
    public init(name: String? = nil, query: QueryFunction) {
        self.name = name
        text = subscriptionText(T.self, query)
    }

    /// Describes a subscription to the objects that match a predicate; `%@` and `$0` refer to arguments. Traps if it is invalid.
    public init(name: String? = nil, where predicateFormat: String, _ args: Any...) {
        self.name = name
        text = subscriptionText(predicateFormat, args, .object(ModelSchema.of(T.self)))
    }

    /// Describes a subscription to the objects that match a predicate. Traps if it is a block predicate.
    public init(name: String? = nil, where predicate: NSPredicate) {
        self.name = name
        text = subscriptionText(predicate, .object(ModelSchema.of(T.self)))
    }
}

/// The canonical text of a query with the names in the file. Traps if it is invalid or not supported by servers.
func subscriptionText(_ format: String, _ arguments: [Any], _ model: ElementModel) -> String {
    subscriptionText { () throws(SluiceError) in try ElementCondition.parse(format, arguments, model) }
}

/// The canonical text of a predicate.
func subscriptionText(_ predicate: NSPredicate, _ model: ElementModel) -> String {
    subscriptionText { () throws(SluiceError) in try ElementCondition.of(predicate, model) }
}

private func subscriptionText(_ condition: () throws(SluiceError) -> ElementCondition) -> String {
    do {
        guard let query = try condition().query else {
            throwRealmException("Block predicates and diacritic insensitive comparisons are not supported in subscriptions.")
        }
        return query.canonicalText
    } catch {
        throwRealmException("\(error)")
    }
}

/// The canonical text of a type-safe query.
func subscriptionText<T: Object>(_ type: T.Type, _ query: (Query<T>) -> Query<Bool>) -> String {
    let (format, arguments) = QueryRendering.render(query(Query<T>.root).node, quotesWords: true)
    return subscriptionText(format, arguments, .object(ModelSchema.of(T.self)))
}

/// The query text that a subscription sends.
package func _subscriptionText<T: Object>(_ subscription: QuerySubscription<T>) -> String { subscription.text }
