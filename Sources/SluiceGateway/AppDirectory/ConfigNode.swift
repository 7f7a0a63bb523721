import SluiceCore
import SluiceValues

/// Collects problems and notes, so that one run reports all of them.
final class ProblemList {
    var problems: [ConfigProblem] = []
    var notes: [ConfigNote] = []
    /// `true` for the files of an app directory. App Services accepted schemas that it could not synchronise, and left their collections
    /// out. `false` makes a problem of each.
    let isLax: Bool
    /// The reasons against the collection that is being read.
    private var reasons: [ConfigNote] = []

    init(isLax: Bool = false) { self.isLax = isLax }

    /// Starts a collection and drops reasons against the previous one.
    func startCollection() { reasons = [] }

    /// Adds the reasons against the collection to the notes.
    ///
    /// - Returns: `true` if there are any, so that the collection is not synchronised.
    func omitsCollection(_ subject: String) -> Bool {
        for var reason in reasons {
            reason.subject = subject
            reason.message += " The collection is not synchronised."
            notes.append(reason)
        }
        return !reasons.isEmpty
    }

    /// Names the class or property of the notes that `body` adds, unless they have one.
    func naming<R>(_ subject: String, _ body: () -> R) -> R {
        let start = notes.count
        let result = body()
        for index in start..<notes.count where notes[index].subject == nil { notes[index].subject = subject }
        return result
    }

    fileprivate func addReason(_ reason: ConfigNote) { reasons.append(reason) }

    func note(_ kind: ConfigNote.Kind, file: String, subject: String? = nil, _ message: String, fix: String = "") {
        notes.append(ConfigNote(kind: kind, file: file, subject: subject, message: message, fix: fix))
    }

    func add(_ code: ErrorCode, file: String, line: Int = 0, column: Int = 0, _ message: String, fix: String? = nil) {
        problems.append(ConfigProblem(code: code, file: file, line: line, column: column, message: message, fix: fix ?? code.fix))
    }
}

/// A JSON value of a configuration file with its position. Accessors add a problem to the list instead of throwing.
struct ConfigNode {
    let file: String
    /// The keys from the top of the file, joined with dots.
    let path: String
    let json: JSON
    /// The position of the key that holds the value.
    let line: Int
    let column: Int
    let list: ProblemList

    init(file: String, json: JSON, list: ProblemList) {
        self.init(file: file, path: "", json: json, line: 1, column: 1, list: list)
    }

    private init(file: String, path: String, json: JSON, line: Int, column: Int, list: ProblemList) {
        self.file = file
        self.path = path
        self.json = json
        self.line = line
        self.column = column
        self.list = list
    }

    var name: String { path.isEmpty ? "the file" : "'\(path)'" }

    func problem(_ message: String, fix: String? = nil, code: ErrorCode = .configInvalid) {
        list.add(code, file: file, line: line, column: column, message, fix: fix)
    }

    func note(_ kind: ConfigNote.Kind, _ message: String, subject: String? = nil, fix: String = "") {
        list.notes.append(
            ConfigNote(kind: kind, file: file, line: line, column: column, subject: subject, message: message, fix: fix))
    }

    /// Reports a part of a schema without effect: a note in an app directory, a problem elsewhere.
    func unused(_ message: String, fix: String, code: ErrorCode = .configInvalid) {
        guard list.isLax else { return problem(message, fix: fix, code: code) }
        note(.unused, message, fix: fix)
    }

    /// Reports a schema that cannot be synchronised. In an app directory its collection is left out. Elsewhere it is a problem.
    func omit(_ message: String, fix: String? = nil, code: ErrorCode = .configInvalid) {
        guard list.isLax else { return problem(message, fix: fix, code: code) }
        list.addReason(
            ConfigNote(kind: .omitted, file: file, line: line, column: column, message: message, fix: fix ?? code.fix))
    }

    /// Returns the member of an object as a node; nil if there is none.
    func child(_ key: String) -> ConfigNode? { json.members?.last { $0.key == key }.map(child) }

    private func child(_ member: JSON.Member) -> ConfigNode {
        ConfigNode(
            file: file, path: path.isEmpty ? member.key : "\(path).\(member.key)", json: member.value, line: member.line,
            column: member.column, list: list)
    }

    /// Returns an element of an array, with the position of the array.
    private func element(_ index: Int, _ json: JSON) -> ConfigNode {
        ConfigNode(file: file, path: "\(path)[\(index)]", json: json, line: line, column: column, list: list)
    }

    /// The members of an object in the order of the file. For any other value it is empty, with a problem.
    var members: [(key: String, node: ConfigNode)] {
        guard let members = json.members else {
            problem("\(name) must be an object, not \(json.kindName).")
            return []
        }
        return members.map { ($0.key, child($0)) }
    }

    /// Returns the members of an object with these keys. Any other key is a problem.
    func members(allowing keys: [String]) -> [String: ConfigNode] {
        members(keys) { node, message, fix in
            node.problem(
                message, fix: fix ?? "Remove it; known are \(keys.sorted().joined(separator: ", ")).", code: .configUnknownKey)
        }
    }

    /// Returns the members of a JSON schema with these keywords. Any other keyword has no effect.
    func members(ofSchema keys: [String]) -> [String: ConfigNode] {
        members(keys) { node, message, fix in node.unused(message, fix: fix ?? "Remove it.", code: .configUnknownKey) }
    }

    private func members(_ keys: [String], unknown: (ConfigNode, String, String?) -> Void) -> [String: ConfigNode] {
        var known: [String: ConfigNode] = [:]
        for (key, node) in members {
            guard keys.contains(key) else {
                let near = Suggestion.nearest(to: key, in: keys)
                unknown(
                    node, "'\(key)' is not a known key\(path.isEmpty ? "" : " of \(name)").", near.map { "Did you mean '\($0)'?" })
                continue
            }
            known[key] = node
        }
        return known
    }

    var string: String? {
        if let text = json.string { return text }
        problem("\(name) must be a text, not \(json.kindName).")
        return nil
    }

    var bool: Bool? {
        if let value = json.bool { return value }
        problem("\(name) must be true or false, not \(json.kindName).")
        return nil
    }

    var int: Int64? {
        if let value = json.int { return value }
        problem("\(name) must be a whole number, not \(json.kindName).")
        return nil
    }

    /// The whole number if it is in the range. Any other number is a problem.
    func number(in range: ClosedRange<Int64>) -> Int64? {
        guard let value = int else { return nil }
        if range.contains(value) { return value }
        problem("\(value) is out of range.", fix: "Give \(range.lowerBound) to \(range.upperBound).")
        return nil
    }

    var elements: [ConfigNode] {
        guard let array = json.array else {
            problem("\(name) must be an array, not \(json.kindName).")
            return []
        }
        return array.enumerated().map { element($0, $1) }
    }

    /// The elements of an array of texts.
    var strings: [String] { elements.compactMap(\.string) }
}

extension [String: ConfigNode] {
    /// Returns a required member. Its absence is a problem.
    func required(_ key: String, of node: ConfigNode) -> ConfigNode? {
        if let found = self[key] { return found }
        node.problem("'\(key)' is missing\(node.path.isEmpty ? "" : " in \(node.name)").", fix: "Add it.", code: .configMissing)
        return nil
    }
}

extension JSON {
    /// The kind of the value, for messages.
    var kindName: String {
        switch self {
        case .null: "null"
        case .bool: "a truth value"
        case .int, .double: "a number"
        case .string: "a text"
        case .array: "an array"
        case .object: "an object"
        }
    }
}
