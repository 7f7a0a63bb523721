import SluiceCore
import SluiceIdentity
import SluiceValues

/// Finds the calls of functions in the roles of an app. A call that cannot be made is a note, and its role denies.
struct RuleCallReader {
    /// The rule files by path, as plugins receive them.
    let files: [String: String]
    let functions: [AppFunction]
    let list: ProblemList

    /// Returns the calls, each once, in the order of the files.
    func read() -> [RuleCall] {
        var calls: [RuleCall] = []
        for (path, text) in files.sorted(by: { $0.key < $1.key }) where Self.isRuleFile(path) && text.contains("%function") {
            // The plugin for roles reports a text that is no JSON.
            guard let json = try? JSON.located(Array(text.utf8)) else { continue }
            for role in roles(ConfigNode(file: path, json: json, list: list)) {
                guard let condition = role.child("apply_when") else { continue }
                for call in RuleCall.calls(in: condition.json) where !calls.contains(call) {
                    if isPossible(call, condition, beside: calls.count) { calls.append(call) }
                }
            }
        }
        return calls
    }

    private func roles(_ file: ConfigNode) -> [ConfigNode] {
        if file.json.array != nil { return file.elements }
        return file.child("roles").map { $0.json.array == nil ? [] : $0.elements } ?? []
    }

    private static func isRuleFile(_ path: String) -> Bool {
        path.hasPrefix("data_sources/") && (path.hasSuffix("/rules.json") || path.hasSuffix("/default_rule.json"))
    }

    /// `true` if the gateway can make the call. Notes why not.
    private func isPossible(_ call: RuleCall, _ condition: ConfigNode, beside others: Int) -> Bool {
        guard let problem = problem(of: call, beside: others) else { return true }
        condition.note(
            .missing, "The role denies users whom its function '\(call.name)' decides on: \(problem.reason)", fix: problem.fix)
        return false
    }

    private func problem(of call: RuleCall, beside others: Int) -> (reason: String, fix: String)? {
        guard let function = functions.first(where: { $0.name == call.name }) else {
            let near = Suggestion.nearest(to: call.name, in: functions.map(\.name))
            return ("the app has no such function.", near.map { "Did you mean '\($0)'?" } ?? "Add it to \(FunctionReader.file).")
        }
        guard function.target != nil else {
            return (
                "no service runs it.",
                #"Add to sluice.json: {"functions": {"\#(call.name)": {"url": "https://…", "secret": "NAME of a secret"}}}."#
            )
        }
        if let name = call.names.filter({ !FunctionReader.isKnown($0) && $0 != "%%true" && $0 != "%%false" }).min() {
            return ("its argument '\(name)' has no value when a session starts.", "Use %%user, %%values or %%environment.tag.")
        }
        guard others < RuleCall.most else {
            return ("the rules have more than \(RuleCall.most) different calls.", "Let one function decide on several roles.")
        }
        return nil
    }
}
