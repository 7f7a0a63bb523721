import Synchronization

/// Misuse, for which RealmSwift raises an Objective-C exception. It ends the program.
///
/// A handler lets tools log the reason first. The program ends after the handler returns.
public enum RealmMisuse {
    private static let replaced = Mutex<(@Sendable (String) -> Void)?>(nil)

    /// Sets the handler that receives the reason before the program ends; nil removes it. It runs on the thread of the misuse.
    public static func onException(_ handler: (@Sendable (String) -> Void)?) { replaced.withLock { $0 = handler } }

    static let invalidated = "Object has been deleted or invalidated."
    static let alreadyWriting = "The Realm is already in a write transaction"
    static let wrongThread = "Realm accessed from incorrect thread."
    static let frozenTransaction = "Can't perform transactions on a frozen Realm"
    static let readOnlyTransaction = "Can't perform transactions on read-only Realms."
    static let readOnlyNotifications = "Read-only Realms do not change and do not have change notifications."
    static let frozenObject = "Attempting to modify a frozen object - call thaw on the Object instance first."
    static let frozenNotifications = "Frozen Realms do not change and do not have change notifications."

    static func report(_ reason: String) { replaced.withLock { $0 }?(reason) }
}

/// Ends the program because of a programming error.
func throwRealmException(_ reason: String, file: StaticString = #fileID, line: UInt = #line) -> Never {
    RealmMisuse.report(reason)
    fatalError(reason, file: file, line: line)
}
