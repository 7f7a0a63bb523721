import SluiceCore
import SluiceIdentity
import SluiceValues

/// Reads the authentication triggers of an export, `triggers/*.json`. Those that the gateway does not run are notes.
struct TriggerReader {
    let trees: [String: ConfigNode]

    /// - Parameter functions: The functions of the app, which triggers name.
    func read(_ functions: [AppFunction]) -> [AuthenticationTrigger] {
        TriggerFile.all(in: trees).filter { !$0.isDisabled }.compactMap { trigger($0, functions) }
    }

    /// Returns the trigger; nil for one of another kind or one that is not run.
    private func trigger(_ file: TriggerFile, _ functions: [AppFunction]) -> AuthenticationTrigger? {
        switch file.type {
        case "AUTHENTICATION": return authentication(file, functions)
        case "SCHEDULED":
            let line = file.config?.child("schedule")?.json.string ?? "* * * * *"
            file.note(
                "The scheduled trigger '\(file.name)' is not run.",
                "Let cron call the service of '\(file.function ?? file.name)': \(line) COMMAND")
        // `DatabaseTriggerReader` reads it.
        case TriggerFile.database: break
        default: file.note("The trigger '\(file.name)' has no type that the gateway knows.", "")
        }
        return nil
    }

    private func authentication(_ file: TriggerFile, _ functions: [AppFunction]) -> AuthenticationTrigger? {
        guard let function = file.callable(functions, "authentication") else { return nil }
        guard let operation = file.config?.child("operation_type")?.json.string.flatMap(AuthenticationTrigger.Operation.init) else {
            file.note(
                "The authentication trigger '\(file.name)' is not run: its operation_type is unknown.", "Use CREATE, LOGIN or DELETE.")
            return nil
        }
        let providers = file.config?.child("providers")?.json.array?.compactMap(\.string) ?? []
        return AuthenticationTrigger(file.name, operation, providers: Set(providers), function: function)
    }
}

/// The file of a trigger.
struct TriggerFile {
    /// The type of database triggers.
    static let database = "DATABASE"

    let node: ConfigNode
    let name: String

    /// Returns the files of triggers with a name, by path.
    static func all(in trees: [String: ConfigNode]) -> [TriggerFile] {
        trees.filter { $0.key.hasPrefix("triggers/") }.sorted { $0.key < $1.key }.compactMap { _, node in
            node.child("name")?.json.string.map { TriggerFile(node: node, name: $0) }
        }
    }

    var isDisabled: Bool { node.child("disabled")?.json.bool == true }
    var type: String? { node.child("type")?.json.string?.uppercased() }
    var config: ConfigNode? { node.child("config") }

    /// The function that the trigger calls; nil if it does something else.
    var function: String? {
        let processor = node.child("event_processors")?.child("FUNCTION")?.child("config")
        return (node.child("function_name") ?? processor?.child("function_name"))?.json.string
    }

    /// Returns the function of the trigger; nil with a note if no service runs it.
    ///
    /// - Parameter kind: The kind of the trigger, for the note.
    func callable(_ functions: [AppFunction], _ kind: String) -> String? {
        guard let function, let found = functions.first(where: { $0.name == function }) else {
            note("The \(kind) trigger '\(name)' is not run: it calls no function of the app.", "")
            return nil
        }
        guard found.target != nil else {
            note(
                "The \(kind) trigger '\(name)' is not run: no service runs '\(function)'.",
                #"Add to sluice.json: {"functions": {"\#(function)": {"url": "https://…", "secret": "NAME of a secret"}}}."#)
            return nil
        }
        return function
    }

    func note(_ message: String, _ fix: String) { node.note(.unused, message, fix: fix) }
}
