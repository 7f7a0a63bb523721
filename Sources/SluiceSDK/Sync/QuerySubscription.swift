import SluiceCore

/// A subscription to be: a class, a query, perhaps a name.
public struct QuerySubscription<T: Object> {
    public typealias QueryFunction = (Query<T>) -> Query<Bool>

    let name: String?
    /// Canonical query text.
    let text: String

    /// All objects of the class.
    public init(name: String? = nil) {
        self.name = name
        text = "TRUEPREDICATE"
    }

    /// The objects that match a type-safe query.
    public init(name: String? = nil, query: QueryFunction) {
        self.name = name
        text = subscriptionText(query(Query<T>(.root)).condition)
    }

    /// The objects that match a predicate; `%@` and `$0` stand for arguments.
    public init(name: String? = nil, where predicateFormat: String, _ args: Any...) {
        self.name = name
        text = subscriptionText(predicateFormat, args)
    }
}

/// The canonical text of a query; a text that is none ends the program.
func subscriptionText(_ format: String, _ arguments: [Any]) -> String {
    do {
        return subscriptionText(try PredicateFormat.text(format, arguments))
    } catch {
        throwRealmException("\(error)")
    }
}

func subscriptionText(_ text: String) -> String {
    do {
        return try RQLText.canonical(text)
    } catch {
        throwRealmException("\(error)")
    }
}
