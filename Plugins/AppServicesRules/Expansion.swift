import SluicePluginKit

/// A `%%` name of the rule language.
enum Expansion: Hashable {
    case constant(Bool)
    /// `id`, `type`, `data`, `custom_data` or `identities`, and the path into it.
    case user(member: String, path: [String])
    case value(name: String, path: [String])
    case environmentTag
    case environmentValue(name: String, path: [String])
    /// `%%prevRoot` or `%%root`, and the path into it. It has a value in checks of writes, but not when a session starts.
    case document(Image, path: [String])
    /// `%%request` and similar names, which exist but have no meaning in sync.
    case foreign(String)
    /// A call of a function of the app. The gateway calls it ahead of a session, and the user has the result.
    case function(name: String, arguments: [PluginValue])

    /// The document before or after a write.
    enum Image: String {
        case before = "%%prevRoot"
        case after = "%%root"
    }

    static let userMembers = ["id", "type", "data", "custom_data", "identities"]
    private static let names = [
        "true", "false", "user", "values", "environment", "root", "this", "prev", "prevRoot", "request", "args", "partition",
    ]

    /// Reads a whole expansion such as `%%user.custom_data.team`.
    /// - Throws: `RuleMistake` with a suggestion if there is no such expansion.
    init(_ text: String) throws(RuleMistake) {
        let parts = text.dropFirst(2).split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        let path = Array(parts.dropFirst())
        switch parts[0] {
        case "true" where path.isEmpty: self = .constant(true)
        case "false" where path.isEmpty: self = .constant(false)
        case "user":
            guard let member = path.first, Self.userMembers.contains(member), !path.contains("") else {
                throw RuleMistake("there is no \(text)", meant: path.first, among: Self.userMembers, prefix: "%%user.")
            }
            self = .user(member: member, path: Array(path.dropFirst()))
        case "values" where !path.isEmpty && !path.contains(""): self = .value(name: path[0], path: Array(path.dropFirst()))
        case "environment" where path == ["tag"]: self = .environmentTag
        case "environment" where path.count >= 2 && path[0] == "values":
            self = .environmentValue(name: path[1], path: Array(path.dropFirst(2)))
        case "root" where !path.contains(""): self = .document(.after, path: path)
        case "prevRoot" where !path.contains(""): self = .document(.before, path: path)
        case "this", "prev", "request", "args", "partition": self = .foreign(text)
        default: throw RuleMistake("there is no \(text)", meant: parts[0], among: Self.names, prefix: "%%")
        }
    }

    /// Returns the value in a session, or nil if there is none.
    func resolve(in session: SessionContext) -> PluginValue? {
        switch self {
        case .constant(let v): .bool(v)
        case .user(let member, let path): Self.follow(path, from: Self.member(member, of: session.user))
        case .value(let name, let path): Self.follow(path, from: session.values[name])
        case .environmentTag: .string(session.environment.tag)
        case .environmentValue(let name, let path): Self.follow(path, from: session.environment.values[name])
        case .document(let image, let path): session.write.map { Self.follow(path, in: $0[image]) ?? .null }
        case .function(let name, let arguments): session.user.result(of: name, arguments)
        case .foreign: nil
        }
    }

    /// `true` if the expansion is known in the session. A user's members and the environment are always known, also if absent.
    func isKnown(in session: SessionContext) -> Bool {
        switch self {
        case .constant, .user, .environmentTag, .environmentValue: true
        case .value(let name, _): !session.secrets.contains(name)
        case .document: session.write != nil
        case .function(let name, let arguments): session.user.result(of: name, arguments) != nil
        case .foreign: false
        }
    }

    var isDocument: Bool { if case .document = self { true } else { false } }
    var isFunction: Bool { if case .function = self { true } else { false } }

    private static func member(_ name: String, of user: PluginUser) -> PluginValue? {
        switch name {
        case "id": .string(user.id)
        case "type": .string(user.type)
        case "data": user.data
        case "custom_data": user.customData
        case "identities": user.identities
        default: nil
        }
    }

    /// Follows a path in a document and reads only the field that the path begins with.
    private static func follow(_ path: [String], in document: PluginRow?) -> PluginValue? {
        guard let field = path.first else { return document?.value }
        return follow(Array(path.dropFirst()), from: document?[field])
    }

    /// Follows a path through members of objects and indices of arrays. A name applied to an array collects that member of its elements.
    private static func follow(_ path: [String], from start: PluginValue?) -> PluginValue? {
        guard let start, let step = path.first else { return start }
        let rest = Array(path.dropFirst())
        guard case .array(let elements) = start else { return follow(rest, from: start[step]) }
        if let index = Int(step) { return elements.indices.contains(index) ? follow(rest, from: elements[index]) : nil }
        return .array(elements.compactMap { follow(path, from: $0) })
    }
}

extension PluginUser {
    /// Returns the result of a call; nil if the gateway has not called the function.
    fileprivate func result(of name: String, _ arguments: [PluginValue]) -> PluginValue? {
        functions.first { $0.name == name && $0.arguments == arguments }?.result
    }
}

/// An error in a rule.
struct RuleMistake: Error {
    var message: String

    init(_ message: String) { self.message = message }

    /// - Parameters:
    ///   - word: The written name.
    ///   - names: The known names.
    init(_ message: String, meant word: String?, among names: [String], prefix: String = "") {
        let close = word.flatMap { Suggestion.closest(to: $0, among: names) }
        self.message = close.map { "\(message); did you mean \"\(prefix)\($0)\"?" } ?? message
    }
}

/// Finds the known name nearest to a misspelt one.
enum Suggestion {
    static func closest(to word: String, among names: [String]) -> String? {
        // Sorting makes the choice among equally close names deterministic.
        let ranked = names.sorted().map { (name: $0, distance: distance(word.lowercased(), $0.lowercased())) }
        guard let best = ranked.min(by: { $0.distance < $1.distance }) else { return nil }
        return best.distance <= max(2, word.count / 3) ? best.name : nil
    }

    /// Returns the number of letters to add, remove or replace.
    private static func distance(_ left: String, _ right: String) -> Int {
        let right = Array(right)
        var row = Array(0...right.count)
        for (line, letter) in left.enumerated() {
            var diagonal = row[0]
            row[0] = line + 1
            for column in right.indices {
                let replaced = diagonal + (right[column] == letter ? 0 : 1)
                diagonal = row[column + 1]
                row[column + 1] = min(replaced, row[column] + 1, diagonal + 1)
            }
        }
        return row[right.count]
    }
}
