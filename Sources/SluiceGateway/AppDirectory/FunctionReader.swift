import SluiceCore
import SluiceIdentity
import SluiceValues

/// Reads the functions of an export, and the section `functions` of `sluice.json`, which names their services and plugins.
///
/// Older exports have `functions/NAME/config.json` in place of the list. Other keys of the files are App Services' own.
struct FunctionReader {
    static let file = "functions/config.json"
    /// The entry of the section for functions without one of their own.
    static let others = "*"
    private static let keys = ["url", "secret", "timeout_ms", "answer_bytes", "idempotent", "allow_private_addresses"]
    /// The keys that an entry with a plugin has.
    private static let pluginKeys = ["url", "timeout_ms", "answer_bytes"]
    /// The number of names in a note.
    private static let named = 20

    let trees: [String: ConfigNode]
    let list: ProblemList

    /// - Parameters:
    ///   - section: The section `functions`; nil for none.
    ///   - secrets: The secrets that entries may name.
    func read(_ section: ConfigNode?, _ secrets: AppSecrets) -> [AppFunction] {
        var functions = definitions.compactMap(function)
        let entries = section?.members ?? []
        for (name, node) in entries where name != Self.others && !functions.contains(where: { $0.name == name }) {
            let near = Suggestion.nearest(to: name, in: functions.map(\.name))
            node.problem(
                "The app has no function '\(name)'.",
                fix: near.map { "Did you mean '\($0)'?" } ?? "Add it to \(Self.file), or remove it here.", code: .configUnknownKey)
        }
        let targets = Dictionary(entries.map { ($0.key, target($0.node, secrets)) }) { _, last in last }
        for index in functions.indices { functions[index].target = targets[functions[index].name] ?? targets[Self.others] ?? nil }
        noteTargetless(functions)
        return functions
    }

    // MARK: Definitions

    private var definitions: [ConfigNode] {
        if let node = trees[Self.file] { return node.elements }
        return trees.filter { $0.key.hasPrefix("functions/") }.sorted { $0.key < $1.key }.map(\.value)
    }

    private func function(_ node: ConfigNode) -> AppFunction? {
        // A folder of functions may have configurations of other programs.
        guard let name = node.child("name")?.json.string, !name.isEmpty else { return nil }
        var function = AppFunction(name, isPrivate: node.child("private")?.json.bool ?? false)
        if let id = node.child("run_as_user_id")?.json.string, !id.isEmpty { function.identity = .user(id: id) }
        if node.child("run_as_system")?.json.bool == true { function.identity = .system }
        if let script = node.child("run_as_user_id_script_source"), script.json.string?.isEmpty == false {
            script.note(.unused, "Scripts are not run: the function '\(name)' acts for its caller.")
        }
        if let node = node.child("can_evaluate") { function.condition = condition(node, of: name) }
        return function
    }

    private func condition(_ node: ConfigNode, of function: String) -> Condition {
        let part: String
        do throws(Condition.Unsupported) {
            let condition = try Condition(node.json)
            guard let other = condition.names.filter({ !Self.isKnown($0) }).min() else { return condition }
            part = other
        } catch {
            part = error.part
        }
        node.note(
            .missing, "'\(part)' in can_evaluate is not evaluated: users cannot call the function '\(function)'.",
            fix: "Use %%user, %%values, comparisons, $and, $or and $not.")
        return .constant(false)
    }

    /// `true` if a name has a value in conditions and in arguments.
    static func isKnown(_ name: String) -> Bool {
        name == "%%environment.tag" || name.hasPrefix("%%user.") || name.hasPrefix("%%values.")
    }

    // MARK: Targets

    private func target(_ node: ConfigNode, _ secrets: AppSecrets) -> FunctionTarget? {
        let members = node.members(allowing: Self.keys)
        if let url = members["url"]?.json.string, url.hasPrefix(PluginTarget.scheme) { return plugin(url, members).map { .plugin($0) } }
        return webhook(node, members, secrets).map { .webhook($0) }
    }

    private func plugin(_ url: String, _ members: [String: ConfigNode]) -> PluginTarget? {
        for (key, node) in members.sorted(by: { $0.key < $1.key }) where !Self.pluginKeys.contains(key) {
            node.problem(
                "'\(key)' has no meaning for a function with a plugin.",
                fix: "Remove it; known are \(Self.pluginKeys.sorted().joined(separator: ", ")). For a service, write its URL.")
        }
        let name = String(url.dropFirst(PluginTarget.scheme.count))
        guard !name.isEmpty else {
            members["url"]?.problem("The name of the plugin is missing.", fix: "Write \"plugin:NAME\", as `sluice plugin list` has it.")
            return nil
        }
        var target = PluginTarget(name)
        if let number = members["timeout_ms"]?.number(in: PluginTarget.milliseconds) { target.milliseconds = Int(number) }
        if let number = members["answer_bytes"]?.number(in: WebhookTarget.answerBytes) { target.answerBytes = Int(number) }
        return target
    }

    private func webhook(_ node: ConfigNode, _ members: [String: ConfigNode], _ secrets: AppSecrets) -> WebhookTarget? {
        guard let url = members.required("url", of: node)?.string, let secret = members.required("secret", of: node),
            let name = secret.string
        else { return nil }
        if !secrets.has(name) {
            secret.problem(
                "There is no secret '\(name)'.", fix: #"Name its place: {"secrets": {"\#(name)": {"environment": "VARIABLE"}}}."#,
                code: .configMissing)
        }
        var target = WebhookTarget(url: url, secret: name)
        target.allowsPrivateAddresses = members["allow_private_addresses"]?.bool ?? false
        target.isIdempotent = members["idempotent"]?.bool ?? false
        if let number = members["timeout_ms"]?.number(in: WebhookTarget.milliseconds) { target.milliseconds = Int(number) }
        if let number = members["answer_bytes"]?.number(in: WebhookTarget.answerBytes) { target.answerBytes = Int(number) }
        if !url.hasPrefix("https://"), !(url.hasPrefix("http://") && target.allowsPrivateAddresses) {
            members["url"]?.problem(
                "The URL must start with https://.",
                fix: "For a service in the gateway's own network, http:// is allowed with \"allow_private_addresses\": true. "
                    + "A plugin is \"plugin:NAME\".")
        }
        return target
    }

    /// Notes the functions that nothing runs, once for all.
    private func noteTargetless(_ functions: [AppFunction]) {
        let names = functions.filter { $0.target == nil }.map(\.name)
        guard !names.isEmpty else { return }
        let more = names.count > Self.named ? " and \(names.count - Self.named) more" : ""
        list.note(
            .missing, file: trees[Self.file] == nil ? "functions/" : Self.file,
            "No service runs the functions \(names.prefix(Self.named).joined(separator: ", "))\(more): calls of them fail.",
            fix: #"Add to sluice.json: {"functions": {"NAME": {"url": "https://…", "secret": "NAME of a secret"}}}."#)
    }
}
