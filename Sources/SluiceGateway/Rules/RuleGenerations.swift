import SluiceCore
import SluicePipeline
import SluicePluginHost
import Synchronization

/// The plugin chain in use, and its replacement by a newer one while sessions go on.
///
/// A generation is a chain with its own hosts, told about the app as its directory was then. The next one is started beside it
/// and takes its place only when all of its plugins have accepted the app and answer as the interface asks; calls that are under way end in the one they began in.
final class RuleGenerations: Sendable {
    struct Generation: Sendable {
        var number: UInt64
        var chain: PluginChain
        var app: AppConfiguration

        /// What its plugins are told.
        fileprivate func description(_ schema: AppSchema, _ customDataFields: [String]?) -> JSON {
            AppDescription.json(
                appID: app.appID, directory: app.files, schema: schema.schema, queryableFields: schema.fields,
                isDevelopment: schema.isDevelopment, customDataFields: customDataFields)
        }
    }

    private struct State {
        var current: Generation
        /// Replaced, and waiting for the end of their calls.
        var ending: [Generation] = []
        /// Calls under way, by generation.
        var calls: [UInt64: Int] = [:]
    }

    private let state: Mutex<State>
    private let environment: any Environment
    private let customDataFields: @Sendable (AppConfiguration) async throws -> [String]?
    /// Generations begin and are told about schemas one after another.
    private let turns = OneAfterAnother()

    /// How long calls of the generation before may take before it is ended: none has a later deadline.
    private static let patience: UInt64 = 75_000_000_000
    private static let pause: UInt64 = 20_000_000

    /// - Parameters:
    ///   - chain: not started yet.
    ///   - customDataFields: the columns of the table that users' custom data follow; nil if there is none.
    init(
        _ chain: PluginChain, app: AppConfiguration, environment: any Environment,
        customDataFields: @escaping @Sendable (AppConfiguration) async throws -> [String]?
    ) {
        self.customDataFields = customDataFields
        state = Mutex(State(current: Generation(number: 1, chain: chain, app: app)))
        self.environment = environment
    }

    /// Of the chain in use, from 1.
    var number: UInt64 { state.withLock { $0.current.number } }

    /// How many plugins lack each part of the sandbox.
    var missing: [String: Int] { state.withLock { $0.current }.chain.missing }

    /// What the rules in use were made of.
    var app: AppConfiguration { state.withLock { $0.current.app } }

    /// The one in use, and those before it that are not over yet.
    var all: [Generation] { state.withLock { [$0.current] + $0.ending } }

    /// Asks the chain in use.
    func ask<R: Sendable>(_ body: @Sendable (PluginChain) async throws -> R) async rethrows -> R {
        let generation = state.withLock { state in
            state.calls[state.current.number, default: 0] += 1
            return state.current
        }
        defer { state.withLock { $0.calls[generation.number]? -= 1 } }
        return try await body(generation.chain)
    }

    /// Tells the chain in use, before it is asked about the user's sessions.
    func userChanged(_ user: UserContext) async { await ask { await $0.userChanged(user) } }

    /// Starts the first generation.
    func start(_ schema: AppSchema) async throws {
        let first = state.withLock { $0.current }
        try await first.chain.start()
        try await first.chain.configure(app: first.description(schema, customDataFields(first.app)))
        try await first.chain.conform(schema: schema.schema)
    }

    /// Tells the plugins about a schema that has grown.
    func configure(_ schema: AppSchema) async throws {
        try await turns.run {
            let current = self.state.withLock { $0.current }
            try await current.chain.configure(app: current.description(schema, self.customDataFields(current.app)))
        }
    }

    /// Starts a generation beside the one in use and puts it in its place.
    /// - Parameter schema: the one at that moment.
    /// - Returns: the one before, to be retired.
    /// - Throws: why its plugins cannot be used; the one in use then stays.
    func replace(
        by chain: PluginChain, app: AppConfiguration, schema: @escaping @Sendable () -> AppSchema
    ) async throws -> Generation {
        try await turns.run {
            let before = self.state.withLock { $0.current }
            let next = Generation(number: before.number + 1, chain: chain, app: app)
            do {
                try await chain.start()
                let fields = try await self.customDataFields(app)
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

    /// Ends a generation that has been replaced, when the calls that it was given are over.
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
