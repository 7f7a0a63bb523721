package import SluicePorts
import SluiceValues

/// An authentication trigger of an export: a function that is called for events of users.
package struct AuthenticationTrigger: Hashable, Sendable {
    package enum Operation: String, Hashable, Sendable, CaseIterable {
        case create = "CREATE"
        case login = "LOGIN"
        case delete = "DELETE"

        fileprivate var kind: UserEvent.Kind {
            switch self {
            case .create: .created
            case .login: .loggedIn
            case .delete: .deleted
            }
        }
    }

    package var name: String
    package var operation: Operation
    /// The providers whose events count; empty for all.
    package var providers: Set<String>
    package var function: String

    package init(_ name: String, _ operation: Operation, providers: Set<String> = [], function: String) {
        self.name = name
        self.operation = operation
        self.providers = providers
        self.function = function
    }

    package func matches(_ event: UserEvent) -> Bool {
        event.kind == operation.kind && (providers.isEmpty || providers.contains(event.provider))
    }

    /// Returns the call for an event. Its id is the same whenever the call is repeated.
    ///
    /// - Parameter user: The account of the event, as functions receive it.
    package func call(for event: UserEvent, user: UserContext) -> FunctionCall {
        let argument: JSON = [
            "operationType": .string(operation.rawValue), "providers": [.string(event.provider)], "user": user.json,
            "time": ExtendedForm.timestamp(Timestamp(milliseconds: event.milliseconds)).json,
        ]
        return FunctionCall(function, arguments: [argument], caller: .system, id: "user-event-\(event.id)-\(name)")
    }
}
