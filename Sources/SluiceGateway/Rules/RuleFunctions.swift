import SluiceCore
import SluiceIdentity
import SluicePipeline
import SluicePorts
import SluiceValues

/// Calls the functions that roles name in `apply_when`, when a session starts or its permissions are evaluated again.
///
/// Sessions that wait for the same call share it, and its result is stored for a while (`RuleResults`). At most `width` calls run at a
/// time. Others wait in the order of their arrival, each for a session that is being opened, and give up after `patience`.
actor RuleFunctions {
    /// The maximum number of calls at a time. `CallsInFlight` leaves as many for the other callers of a function.
    static let width = CallsInFlight.perFunction / 2

    /// The longest wait for a turn, in nanoseconds.
    static let patience: UInt64 = 30_000_000_000

    private let functions: any AppFunctions
    private let facts: FunctionFacts
    /// The functions that plugins run. Another generation of the rules may decide otherwise.
    private let inPlugins: Set<String>
    private let environment: any Environment
    private let turns = AsyncSemaphore(width: RuleFunctions.width)
    private var results = RuleResults()
    private var running: [RuleResults.Key: Task<Result<JSON, SluiceError>, Never>] = [:]

    init(_ functions: any AppFunctions, facts: FunctionFacts, inPlugins: Set<String> = [], environment: any Environment) {
        self.functions = functions
        self.inPlugins = inPlugins
        self.facts = facts
        self.environment = environment
    }

    /// Returns the results of calls for a user.
    ///
    /// - Parameter generation: The generation of the rules.
    /// - Throws: `pluginUnavailable` if a function fails or does not answer. The session then waits for its permissions, as for a plugin.
    func results(
        of calls: [RuleCall], for user: UserContext, generation: UInt64 = 1
    ) async throws(SluiceError) -> [RuleFunctionResult] {
        let answers = calls.map { call in
            answer(RuleResults.Key(call, for: user, generation: inPlugins.contains(call.name) ? generation : 0))
        }
        var found: [RuleFunctionResult] = []
        for (call, answer) in zip(calls, answers) {
            switch await answer.value {
            case .success(let result): found.append(RuleFunctionResult(name: call.name, arguments: call.arguments, result: result))
            case .failure(let error):
                throw SluiceError(
                    .pluginUnavailable, "The rules depend on a function that does not answer.",
                    fix: "The session tries again. The log of the gateway names the function.", cause: .error(error))
            }
        }
        return found
    }

    /// A stored result, or a call that is under way.
    private enum Answer {
        case stored(JSON)
        case awaited(Task<Result<JSON, SluiceError>, Never>)

        var value: Result<JSON, SluiceError> {
            get async {
                switch self {
                case .stored(let result): .success(result)
                case .awaited(let task): await task.value
                }
            }
        }
    }

    private func answer(_ key: RuleResults.Key) -> Answer {
        if let stored = results.result(of: key, at: environment.monotonicNanoseconds()) { return .stored(stored) }
        if let task = running[key] { return .awaited(task) }
        // Unstructured because: several sessions wait for it, and one that ends must not end the others. It has a deadline.
        let task = Task {
            let result =
                await turns.pass(within: Self.patience, of: environment) { await self.call(key) }
                ?? .failure(
                    SluiceError(
                        .functionTimeout, "The function '\(key.call.name)' was not called within \(Self.patience / 1_000_000_000) s.",
                        value: "\(Self.width) calls of rules run", fix: "Let the services of the functions in rules answer faster."))
            finish(key, result)
            return result
        }
        running[key] = task
        return .awaited(task)
    }

    private nonisolated func call(_ key: RuleResults.Key) async -> Result<JSON, SluiceError> {
        let arguments = key.call.arguments { facts.value(of: $0, for: key.user) }
        do throws(SluiceError) {
            let result = try await functions.call(FunctionCall(key.call.name, arguments: arguments, caller: .rules(key.user)))
            guard result.utf8.count <= RuleResults.bytes else {
                throw SluiceError(
                    .functionFailed, "The result of the function '\(key.call.name)' is too large for a rule.",
                    fix: "Return at most \(RuleResults.bytes) bytes.")
            }
            return .success(result)
        } catch {
            return .failure(error)
        }
    }

    private func finish(_ key: RuleResults.Key, _ result: Result<JSON, SluiceError>) {
        running[key] = nil
        if case .success(let json) = result { results.store(json, of: key, at: environment.monotonicNanoseconds()) }
    }
}
