/// The hook that runs functions of the app, those with the target `plugin:NAME` in `sluice.json`.
///
/// The gateway has checked that the caller may call the function. It keeps an instance for functions alone, in a process of its own: of the
/// other hooks it calls only `configure` and that of `LoginHandler` there.
public protocol FunctionHandler: RulePlugin {
    /// Runs a function.
    /// - Returns: The result, in extended JSON.
    /// - Throws: `PluginDenial` with the function's own error, whose text the caller receives. For any other error the function is
    ///   unavailable, and its text is for operators alone.
    func callFunction(_ call: PluginFunctionCall) throws -> PluginValue
}

/// The hook that decides on logins of the provider `custom-function`.
public protocol LoginHandler: RulePlugin {
    /// Identifies a user.
    /// - Parameters:
    ///   - payload: The payload of the login, in extended JSON. Its sender is unknown.
    ///   - requestID: The id of the call.
    /// - Throws: `PluginDenial` to reject the login. Its text reaches the client.
    func authenticate(payload: PluginValue, requestID: String) throws -> PluginIdentity
}

/// A call of a function of the app.
public struct PluginFunctionCall: Hashable, Sendable {
    public var function: String
    /// The arguments, in extended JSON.
    public var arguments: [PluginValue]
    /// The caller. Nil if the gateway itself calls.
    public var user: PluginUser?
    /// The user whose rights the function has: an id, or `system`.
    public var runAs: String
    /// The id of the call, the same whenever it is repeated.
    public var requestID: String

    /// - Parameter runAs: Nil for the caller, or `system` without one.
    public init(_ function: String, arguments: [PluginValue] = [], user: PluginUser? = nil, runAs: String? = nil, requestID: String = "") {
        self.function = function
        self.arguments = arguments
        self.user = user
        self.runAs = runAs ?? user?.id ?? "system"
        self.requestID = requestID
    }
}

/// A user whom a login has identified.
public struct PluginIdentity: Hashable, Sendable {
    /// The id of the user at the app's own service, of 1 to 255 bytes. Another id is another user.
    public var id: String
    /// The name in the user's data. Nil for none.
    public var name: String?

    public init(id: String, name: String? = nil) {
        self.id = id
        self.name = name
    }
}

extension PluginFunctionCall {
    init(_ value: PluginValue) throws(PluginError) {
        guard let user = value["user"] else { throw PluginError(unusable: "user") }
        self.init(
            try value.text("function"), arguments: try value.list("arguments"), user: user.isNull ? nil : try PluginUser(user),
            runAs: try value.text("run_as"), requestID: try value.text("request_id"))
    }

    var value: PluginValue {
        [
            "function": .string(function), "arguments": .array(arguments), "user": user?.value ?? .null, "run_as": .string(runAs),
            "request_id": .string(requestID),
        ]
    }
}

extension PluginIdentity {
    init(_ value: PluginValue) throws(PluginError) { self.init(id: try value.text("id"), name: value["name"]?.string) }

    var value: PluginValue {
        var value: PluginValue = ["id": .string(id)]
        if let name { value.set("name", to: .string(name)) }
        return value
    }
}
