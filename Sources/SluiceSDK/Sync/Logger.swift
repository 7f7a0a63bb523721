import Foundation
import Synchronization

/// How much is logged: a level shows its own messages and those of the levels before it.
public enum LogLevel: UInt, Sendable, CaseIterable {
    case off, fatal, error, warn, info, detail, debug, trace, all
}

/// As apps written for RealmSwift have it.
public typealias SyncLogLevel = LogLevel

/// Takes the SDK's log: what sync sessions do, in the categories under `Category.Sync.Client`.
///
/// Nothing is logged until the app sets a level or a logger: then by `.info` of all categories where no level is set, to the standard
/// error output where no logger is. A message of more than 2,000 characters is cut.
public final class Logger: Sendable {
    public typealias LogFunction = @Sendable (LogLevel, any LogCategory, String) -> Void

    private struct State {
        var shared = Logger.standardError
        /// Of a category and those below it; the last that fits counts.
        var levels: [(category: String, level: LogLevel)] = []
    }

    private static let state = Mutex(State())
    /// The loudest level that any category shows: where nothing is logged a message costs one look at it.
    private static let loudest = Atomic<UInt>(0)
    private static let standardError = Logger { level, category, message in
        try? FileHandle.standardError.write(contentsOf: Data("\(category.rawValue) \(level): \(message)\n".utf8))
    }

    /// Characters of a message.
    static let characters = 2_000

    private let function: LogFunction

    /// - Parameter function: called for each message, from any thread and several at a time; sync waits for it.
    public init(function: @escaping LogFunction) { self.function = function }

    /// A logger, and the level of all categories, which is everybody's.
    public convenience init(level: LogLevel, function: @escaping LogFunction) {
        self.init(function: function)
        Logger.setLogLevel(level)
    }

    /// The same for a function that takes no categories.
    public convenience init(level: LogLevel, logFunction: @escaping @Sendable (LogLevel, String) -> Void) {
        self.init(level: level) { level, _, message in logFunction(level, message) }
    }

    /// The logger in use. Setting one turns the log on.
    public static var shared: Logger {
        get { state.withLock { $0.shared } }
        set {
            change { state in
                state.shared = newValue
                if state.levels.isEmpty { state.levels = [(Category.realm.rawValue, .info)] }
            }
        }
    }

    /// The level of all categories, which is everybody's.
    public var level: LogLevel {
        get { Logger.logLevel(for: Category.realm) }
        set { Logger.setLogLevel(newValue) }
    }

    /// Sets the level of a category and of those below it.
    public static func setLogLevel(_ level: LogLevel, for category: any LogCategory = Category.realm) {
        change { state in
            state.levels.removeAll { Logger.covers(category.rawValue, $0.category) }
            state.levels.append((category.rawValue, level))
        }
    }

    public static func logLevel(for category: any LogCategory = Category.realm) -> LogLevel {
        state.withLock { state in state.levels.last { covers($0.category, category.rawValue) }?.level ?? .off }
    }

    private static func change(_ change: (inout State) -> Void) {
        state.withLock { state in
            change(&state)
            loudest.store(state.levels.map { $0.level.rawValue }.max() ?? 0, ordering: .relaxed)
        }
    }

    /// Whether a category is the other or above it.
    private static func covers(_ category: String, _ other: String) -> Bool { other == category || other.hasPrefix(category + ".") }

    static func log(_ level: LogLevel, _ category: any LogCategory, _ message: () -> String) {
        guard level.rawValue <= loudest.load(ordering: .relaxed), level.isShown(at: logLevel(for: category)) else { return }
        shared.write(level, category, bounded(message()))
    }

    static func bounded(_ message: String) -> String {
        message.count > characters ? message.prefix(characters - 1) + "…" : message
    }

    func write(_ level: LogLevel, _ category: any LogCategory, _ message: String) { function(level, category, message) }
}

extension LogLevel {
    func isShown(at threshold: LogLevel) -> Bool { rawValue <= threshold.rawValue }
}
