package import SluiceValues

/// A call of a function in the `apply_when` of a role (`%function`).
package struct RuleCall: Hashable, Sendable {
    /// The maximum number of different calls in the rules of an app.
    package static let most = 32

    package var name: String
    /// The arguments as the rules have them: values, and names such as `%%user.id`.
    package var arguments: [JSON]

    package init(_ name: String, arguments: [JSON] = []) {
        self.name = name
        self.arguments = arguments
    }

    /// Returns the calls in an expression, in the order of its text.
    package static func calls(in expression: JSON) -> [RuleCall] {
        switch expression {
        case .array(let elements): return elements.flatMap(calls)
        case .object(let members):
            return members.flatMap { member -> [RuleCall] in
                guard member.key == "%function" else { return calls(in: member.value) }
                guard let name = member.value["name"]?.string else { return [] }
                return [RuleCall(name, arguments: member.value["arguments"]?.array ?? [])]
            }
        default: return []
        }
    }

    /// The names in the arguments.
    package var names: Set<String> { arguments.reduce(into: []) { $0.formUnion(Self.names(in: $1)) } }

    private static func names(in json: JSON) -> Set<String> {
        switch json {
        case .string(let text): text.hasPrefix("%%") ? [text] : []
        case .array(let elements): elements.reduce(into: []) { $0.formUnion(names(in: $1)) }
        case .object(let members): members.reduce(into: []) { $0.formUnion(names(in: $1.value)) }
        default: []
        }
    }

    /// Returns the arguments with values in place of names.
    ///
    /// - Parameter value: Returns the value of a name; nil if it has none. The argument is null then.
    package func arguments(_ value: (_ name: String) -> JSON?) -> [JSON] { arguments.map { Self.resolved($0, value) } }

    private static func resolved(_ json: JSON, _ value: (String) -> JSON?) -> JSON {
        switch json {
        case .string(let text) where text.hasPrefix("%%"): value(text) ?? .null
        case .array(let elements): .array(elements.map { resolved($0, value) })
        case .object(let members): .object(members.map { JSON.Member($0.key, resolved($0.value, value)) })
        default: json
        }
    }
}
