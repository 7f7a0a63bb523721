import Foundation
import Glibc
import Logging
import SluiceCore
import SluicePluginHost
import SluicePorts
import Synchronization
import TestSupport
import Testing

/// Where the build put the plugins and the host program: beside the test bundle.
enum Built {
    static let folder: String = {
        var buffer = [CChar](repeating: 0, count: 4_096)
        let count = readlink("/proc/self/exe", &buffer, buffer.count - 1)
        let path = String(decoding: buffer.prefix(max(count, 0)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return path.split(separator: "/").dropLast().map { "/" + $0 }.joined()
    }()

    /// The same of another build, such as one with a sanitizer (`dev/asan`): for plugins in processes of their own.
    static let hosted = ProcessInfo.processInfo.environment["SLUICE_TEST_PLUGIN_HOST"] ?? folder

    static let host = "\(hosted)/sluice-plugin-host"
    static func plugin(_ name: String, _ mode: PluginSpec.Mode = .process) -> String {
        "\(mode == .inProcess ? folder : hosted)/lib\(name).so"
    }
}

/// Collects what is logged, as `level text`.
final class LogBook: Sendable {
    private let book = Watched<[String]>([])

    var lines: [String] { book.value }

    func add(_ line: String) { book.change { $0.append(line) } }

    /// Waits until a line with the word has been logged.
    func wait(for word: String) async {
        let isLogged = await book.until { lines in lines.contains { $0.contains(word) } }
        #expect(isLogged, "no line has \"\(word)\": \(lines)")
    }

    var logger: Logger {
        var logger = Logger(label: "test") { _ in BookHandler(book: self) }
        logger.logLevel = .trace
        return logger
    }
}

private struct BookHandler: LogHandler {
    let book: LogBook
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level = .trace

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let all = metadata.merging(event.metadata ?? [:]) { _, new in new }
        let details = all.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: " ")
        book.add("\(event.level) \(event.message) \(details)")
    }
}

/// Starts a chain, runs the test, stops the chain.
func withChain<R>(
    _ plugins: [PluginSpec], functions: Set<String> = [], log: LogBook = LogBook(), observer: PluginObserver = PluginObserver(),
    services: HostServices = .none, keep: @escaping @Sendable ([PluginRecord]) async throws(SluiceError) -> Void = PluginRecord.nowhere,
    _ body: (PluginChain) async throws -> R
) async throws -> R {
    let chain = PluginChain(
        plugins: plugins, functionPlugins: functions, hostExecutable: Built.host, logger: log.logger, observer: observer,
        services: services, keep: keep)
    try await chain.start()
    do {
        let result = try await body(chain)
        await chain.stop()
        return result
    } catch {
        await chain.stop()
        throw error
    }
}

/// - Parameter milliseconds: for a call, by the clock and of processor time.
func faulty(_ mode: PluginSpec.Mode = .process, milliseconds: UInt64 = 5_000) -> PluginSpec {
    var spec = PluginSpec(path: Built.plugin("FaultyC", mode), mode: mode, deadline: milliseconds * 1_000_000)
    spec.stall = 0
    // Who waits for the next process is not late.
    spec.wait = 60_000_000_000
    return spec
}

/// A user whose id makes FaultyC misbehave.
func user(_ id: String) -> UserContext { UserContext(id: id) }

/// Whether the chain answers a user whom nothing befalls.
func answers(_ chain: PluginChain) async -> Bool {
    (try? await chain.openSession(user: user("somebody"), types: ["Store"])) != nil
}

/// The error that the body throws; nil when it throws none.
func failure<R>(_ body: () async throws -> R) async -> SluiceError? {
    do {
        _ = try await body()
        return nil
    } catch { return error as? SluiceError }
}

/// What an observer heard.
final class Counts: Sendable {
    private struct State: Sendable {
        var calls = 0
        var failures = 0
        var ended: [String] = []
        var out: [Bool] = []
        var counted: [String: UInt64] = [:]
    }

    private let state = Watched(State())

    var calls: Int { state.value.calls }
    var failures: Int { state.value.failures }
    var ended: [String] { state.value.ended }
    /// When a plugin was out, and when it was back.
    var out: [Bool] { state.value.out }
    var counted: [String: UInt64] { state.value.counted }

    /// Waits until plugins have gone out or come back so many times.
    func untilOut(_ count: Int) async { #expect(await state.until { $0.out.count >= count }) }

    var observer: PluginObserver {
        PluginObserver(
            called: { _, _, isFailure in
                self.state.change {
                    $0.calls += 1
                    $0.failures += isFailure ? 1 : 0
                }
            },
            hostEnded: { plugin in self.state.change { $0.ended.append(plugin) } },
            isOut: { _, isOut in self.state.change { $0.out.append(isOut) } },
            counted: { plugin, name, amount in self.state.change { $0.counted["\(plugin).\(name)", default: 0] += amount } })
    }
}

let store = schema["Store"]!

let schema = Schema([
    ObjectType(
        name: "Store",
        properties: [
            Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "name", type: .string, isOptional: true),
            Property(id: 3, name: "size", type: .int, isOptional: true),
        ]),
    ObjectType(
        name: "Reading", kind: .asymmetric,
        properties: [Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "value", type: .double, isOptional: true)]),
    ObjectType(
        name: "Rare", kind: .asymmetric,
        properties: [Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "note", type: .string, isOptional: true)]),
])

extension PluginChain {
    /// The process of each plugin; nil in process and during a replacement.
    var processIDs: [Int32?] { standings.map(\.processID) }
}
