import SluiceCore
import SluicePipeline
import SluicePluginHost
import SluicePorts
import SluiceValues
import Synchronization

/// The plugin chain in use, and its replacement while sessions continue.
///
/// A generation is a chain with its own hosts, configured with one state of the app directory. A new generation starts beside the current
/// one. It replaces it only once all its plugins have accepted the app and conform to the interface. Calls end in the generation in which
/// they started.
final class RuleGenerations: Sendable {
    struct Generation: Sendable {
        var number: UInt64
        var chain: PluginChain
        var app: AppConfiguration

        /// The app description that configures the plugins.
        fileprivate func description(_ schema: AppSchema, _ customDataFields: [String]?) -> JSON {
            AppDescription.json(
                appID: app.appID, directory: app.files, schema: schema.schema, queryableFields: schema.fields,
                isDevelopment: schema.isDevelopment, customDataFields: customDataFields)
        }
    }

    private struct State {
        var current: Generation
        /// The replaced generations whose calls are still running.
        var ending: [Generation] = []
        /// The number of running calls by generation.
        var calls: [UInt64: Int] = [:]
    }

    private let state: Mutex<State>
    private let environment: any Environment
    private let customDataFields: @Sendable (AppConfiguration) async throws -> [String]?
    /// Serializes the start of generations and schema changes.
    private let turns = AsyncSerialQueue()

    /// The longest wait for calls of a replaced generation, in nanoseconds. No call has a later deadline.
    private static let patience: UInt64 = 75_000_000_000
    private static let pause: UInt64 = 20_000_000

    /// - Parameters:
    ///   - chain: The first chain, not started yet.
    ///   - customDataFields: Returns the columns of the table for custom user data; nil if there is none.
    init(
        _ chain: PluginChain, app: AppConfiguration, environment: any Environment,
        customDataFields: @escaping @Sendable (AppConfiguration) async throws -> [String]?
    ) {
        self.customDataFields = customDataFields
        state = Mutex(State(current: Generation(number: 1, chain: chain, app: app)))
        self.environment = environment
    }

    /// The generation in use.
    var current: Generation { state.withLock { $0.current } }

    /// The number of the generation in use, from 1.
    var number: UInt64 { current.number }

    /// The number of plugins that lack a part of the sandbox, by part.
    var missing: [String: Int] { state.withLock { $0.current }.chain.missing }

    /// The configuration of the generation in use.
    var app: AppConfiguration { state.withLock { $0.current.app } }

    /// The generation in use, then those that are ending.
    var all: [Generation] { state.withLock { [$0.current] + $0.ending } }

    /// Calls the body with the chain in use and counts the call, so that `retire` waits for it.
    func ask<R: Sendable>(_ body: @Sendable (PluginChain) async throws -> R) async rethrows -> R {
        // The count and the choice of the chain share one lock: a replaced generation receives no further calls.
        let generation = state.withLock { state in
            state.calls[state.current.number, default: 0] += 1
            return state.current
        }
        defer { state.withLock { $0.calls[generation.number]? -= 1 } }
        return try await body(generation.chain)
    }

    /// Notifies the chain in use of changed user data. Call it before the user's sessions evaluate the rules again.
    func userChanged(_ user: UserContext) async { await ask { await $0.userChanged(user) } }

    /// Starts and configures the first generation.
    ///
    /// - Throws: The error of the first plugin that fails.
    func start(_ schema: AppSchema) async throws {
        let first = state.withLock { $0.current }
        try await first.chain.start()
        try first.app.check(first.chain.plugins)
        try await first.chain.configure(app: first.description(schema, customDataFields(first.app)))
        try await first.chain.conform(schema: schema.schema)
    }

    /// Configures the chain in use with a schema that has grown.
    func configure(_ schema: AppSchema) async throws {
        try await turns.run {
            let current = self.state.withLock { $0.current }
            try await current.chain.configure(app: current.description(schema, self.customDataFields(current.app)))
        }
    }

    /// Starts a generation beside the one in use and replaces that one.
    ///
    /// - Parameter schema: Returns the current schema.
    /// - Returns: The generation before, for `retire`.
    /// - Throws: The error of a plugin or of PostgreSQL. The generation in use then stays.
    func replace(
        by chain: PluginChain, app: AppConfiguration, schema: @escaping @Sendable () -> AppSchema
    ) async throws -> Generation {
        try await turns.run {
            let before = self.state.withLock { $0.current }
            let next = Generation(number: before.number + 1, chain: chain, app: app)
            do {
                try await chain.start()
                try app.check(chain.plugins)
                let fields = try await self.customDataFields(app)
                // Read last: a schema that grows from here on reaches the new generation through `configure`, which waits for this turn.
                let schema = schema()
                try await chain.configure(app: next.description(schema, fields))
                try await chain.conform(schema: schema.schema)
            } catch {
                await chain.stop()
                throw error
            }
            self.state.withLock { state in
                state.ending.append(before)
                state.current = next
            }
            return before
        }
    }

    /// Stops a replaced generation once its calls have ended, or after `patience`.
    func retire(_ old: Generation) async {
        let deadline = environment.monotonicNanoseconds() + Self.patience
        while state.withLock({ $0.calls[old.number] ?? 0 }) > 0, environment.monotonicNanoseconds() < deadline {
            guard (try? await environment.sleep(nanoseconds: Self.pause)) != nil else { break }
        }
        await old.chain.stop()
        state.withLock { state in
            state.calls[old.number] = nil
            state.ending.removeAll { $0.number == old.number }
        }
    }

    func stop() async { await state.withLock { $0.current.chain }.stop() }
}
