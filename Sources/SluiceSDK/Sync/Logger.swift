import Foundation
import Synchronization

/// The level of a log message. As a threshold it includes all levels before it.
public enum LogLevel: UInt, Sendable, CaseIterable {
    case off, fatal, error, warn, info, detail, debug, trace, all
}

/// The name that RealmSwift uses.
public typealias SyncLogLevel = LogLevel

/// Receives the SDK's log: the activity of sync sessions, in the categories under `Category.Sync.Client`.
///
/// The log is off until the app sets a level or a logger. The defaults are then level `.info` and standard error.
/// The warning of properties that are not stored goes to standard error at any level.
/// Messages are truncated to 2,000 characters.
public final class Logger: Sendable {
    public typealias LogFunction = @Sendable (LogLevel, any LogCategory, String) -> Void

    private struct State {
        var shared = Logger.standardError
        /// The levels by category, including its subcategories. The last match applies.
        var levels: [(category: String, level: LogLevel)] = []
    }

    private static let state = Mutex(State())
    /// The highest level of all categories. It makes a disabled log cost one atomic load per message.
    private static let loudest = Atomic<UInt>(0)
    private static let standardError = Logger { level, category, message in
        try? FileHandle.standardError.write(contentsOf: Data("\(category.rawValue) \(level): \(message)\n".utf8))
    }

    /// The most characters of a message.
    static let characters = 2_000

    private let function: LogFunction

    /// Creates a logger.
    /// - Parameter function: Called for each message, on any thread and concurrently. Sync waits for it.
    public init(function: @escaping LogFunction) { self.function = function }

    /// Creates a logger and sets the level of all categories, which is shared by all loggers.
    public convenience init(level: LogLevel, function: @escaping LogFunction) {
        self.init(function: function)
        Logger.setLogLevel(level)
    }

    /// Creates a logger whose function receives no category.
    public convenience init(level: LogLevel, logFunction: @escaping @Sendable (LogLevel, String) -> Void) {
        self.init(level: level) { level, _, message in logFunction(level, message) }
    }

    /// The logger in use. Setting it turns the log on.
    public static var shared: Logger {
        get { state.withLock { $0.shared } }
        set {
            change { state in
                state.shared = newValue
                if state.levels.isEmpty { state.levels = [(Category.realm.rawValue, .info)] }
            }
        }
    }

    /// The level of all categories, which is shared by all loggers.
    public var level: LogLevel {
        get { Logger.logLevel(for: Category.realm) }
        set { Logger.setLogLevel(newValue) }
    }

    /// Sets the level of a category and its subcategories.
    public static func setLogLevel(_ level: LogLevel, for category: any LogCategory = Category.realm) {
        change { state in
            state.levels.removeAll { Logger.covers(category.rawValue, $0.category) }
            state.levels.append((category.rawValue, level))
        }
    }

    /// The level of a category; `off` until one is set.
    public static func logLevel(for category: any LogCategory = Category.realm) -> LogLevel {
        state.withLock { state in state.levels.last { covers($0.category, category.rawValue) }?.level ?? .off }
    }

    private static func change(_ change: (inout State) -> Void) {
        state.withLock { state in
            change(&state)
            loudest.store(state.levels.map { $0.level.rawValue }.max() ?? 0, ordering: .relaxed)
        }
    }

    /// `true` if the category is the other one or its parent.
    private static func covers(_ category: String, _ other: String) -> Bool { other == category || other.hasPrefix(category + ".") }

    /// Logs a message. The text is created only if the level is shown.
    static func log(_ level: LogLevel, _ category: any LogCategory, _ message: () -> String) {
        guard level.rawValue <= loudest.load(ordering: .relaxed), level.isShown(at: logLevel(for: category)) else { return }
        shared.write(level, category, bounded(message()))
    }

    /// Writes a warning to standard error at any level, off included, and to the app's logger if its level shows warnings.
    static func warn(_ category: any LogCategory, _ text: String) {
        let message = bounded(text)
        standardError.write(.warn, category, message)
        let logger = shared
        // The default logger has written the message already.
        if logger !== standardError, LogLevel.warn.isShown(at: logLevel(for: category)) { logger.write(.warn, category, message) }
    }

    static func bounded(_ message: String) -> String {
        message.count > characters ? message.prefix(characters - 1) + "…" : message
    }

    func write(_ level: LogLevel, _ category: any LogCategory, _ message: String) { function(level, category, message) }
}

extension LogLevel {
    func isShown(at threshold: LogLevel) -> Bool { rawValue <= threshold.rawValue }
}
