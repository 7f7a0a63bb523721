import SluiceCore
import SluicePorts
import SluiceValues

/// The forms of `call_function` and `authenticate`.
extension HookCoding {
    /// Returns the input of a call without its id. Repetitions share it.
    static func json(_ subject: PluginFunctionCall.Subject) -> JSON {
        switch subject {
        case .function(let name, let arguments, let user, let runAs):
            [
                "function": .string(name), "arguments": .array(arguments), "user": user.map { json($0) } ?? .null,
                "run_as": .string(runAs),
            ]
        case .login(let payload): ["payload": payload]
        }
    }

    /// Returns the input of a call.
    static func json(_ call: PluginFunctionCall) -> JSON {
        .object((json(call.subject).members ?? []) + [JSON.Member("request_id", .string(call.id))])
    }

    /// Decodes the identity of a login.
    /// - Throws: `pluginBadAnswer`.
    static func identity(_ answer: Answer) throws(SluiceError) -> JSON {
        try answer.allow(["id", "name"], in: answer.json, at: "the answer")
        guard try !answer.text(answer.json, "id", at: "the answer").isEmpty else { throw answer.bad("the id is empty") }
        if let name = answer.json["name"], name != .null, name.string == nil { throw answer.bad("the name is no text") }
        return answer.json
    }
}

extension PluginFunctionCall {
    /// The hook that answers the call.
    var hook: Hook {
        switch subject {
        case .function: .callFunction
        case .login: .authenticate
        }
    }
}
