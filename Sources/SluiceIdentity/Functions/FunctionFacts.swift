package import SluicePorts
package import SluiceValues

/// The facts about the app that conditions and arguments of functions need.
package struct FunctionFacts: Sendable {
    package var id: String
    /// The values of `%%values`.
    package var values: [String: JSON]
    /// The value of `%%environment.tag`.
    package var environmentTag: String

    package init(id: String, values: [String: JSON] = [:], environmentTag: String = "") {
        self.id = id
        self.values = values
        self.environmentTag = environmentTag
    }

    /// Returns the value of a name such as `%%user.id` in a condition or an argument; nil for none.
    package func value(of name: String, for user: UserContext) -> JSON? {
        let path = name.split(separator: ".", omittingEmptySubsequences: false)
        switch path.first {
        case "%%user": return user.json.value(at: path.dropFirst())
        case "%%values": return path.count < 2 ? nil : values[String(path[1])]?.value(at: path.dropFirst(2))
        case "%%environment": return path.dropFirst() == ["tag"] ? .string(environmentTag) : nil
        case "%%true": return true
        case "%%false": return false
        default: return nil
        }
    }
}
