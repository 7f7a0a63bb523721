import SluiceCore
import SluiceIdentity
import SluiceValues

/// Reads the triggers of an export, `triggers/*.json`. Those that the gateway does not run are notes.
struct TriggerReader {
    let trees: [String: ConfigNode]
    let list: ProblemList

    /// - Parameter functions: The functions of the app, which triggers name.
    func read(_ functions: [AppFunction]) -> [AuthenticationTrigger] {
        trees.filter { $0.key.hasPrefix("triggers/") }.sorted { $0.key < $1.key }.compactMap { trigger($0.value, functions) }
    }

    /// Returns the trigger; nil for one that is disabled or not run.
    private func trigger(_ node: ConfigNode, _ functions: [AppFunction]) -> AuthenticationTrigger? {
        guard let name = node.child("name")?.json.string, node.child("disabled")?.json.bool != true else { return nil }
        let function = Self.function(node)
        let config = node.child("config")
        switch node.child("type")?.json.string?.uppercased() {
        case "AUTHENTICATION": return authentication(node, name, function, config, functions)
        case "SCHEDULED":
            let line = config?.child("schedule")?.json.string ?? "* * * * *"
            note(node, "The scheduled trigger '\(name)' is not run.", "Let cron call the service of '\(function ?? name)': \(line) COMMAND")
        case "DATABASE":
            let table = config?.child("collection")?.json.string ?? "the collection"
            note(node, "The database trigger '\(name)' is not run.", "Use an SQL trigger on the table of \(table), or consume its topic.")
        default: note(node, "The trigger '\(name)' has no type that the gateway knows.", "")
        }
        return nil
    }

    /// The function that the trigger calls; nil if it does something else.
    private static func function(_ node: ConfigNode) -> String? {
        let processor = node.child("event_processors")?.child("FUNCTION")?.child("config")
        return (node.child("function_name") ?? processor?.child("function_name"))?.json.string
    }

    private func authentication(
        _ node: ConfigNode, _ name: String, _ function: String?, _ config: ConfigNode?, _ functions: [AppFunction]
    ) -> AuthenticationTrigger? {
        guard let function, let found = functions.first(where: { $0.name == function }) else {
            note(node, "The authentication trigger '\(name)' is not run: it calls no function of the app.", "")
            return nil
        }
        guard found.target != nil else {
            note(
                node, "The authentication trigger '\(name)' is not run: no service runs '\(function)'.",
                #"Add to sluice.json: {"functions": {"\#(function)": {"url": "https://…", "secret": "NAME of a secret"}}}."#)
            return nil
        }
        guard let operation = config?.child("operation_type")?.json.string.flatMap(AuthenticationTrigger.Operation.init) else {
            note(node, "The authentication trigger '\(name)' is not run: its operation_type is unknown.", "Use CREATE, LOGIN or DELETE.")
            return nil
        }
        let providers = config?.child("providers")?.json.array?.compactMap(\.string) ?? []
        return AuthenticationTrigger(name, operation, providers: Set(providers), function: function)
    }

    private func note(_ node: ConfigNode, _ message: String, _ fix: String) { node.note(.unused, message, fix: fix) }
}
