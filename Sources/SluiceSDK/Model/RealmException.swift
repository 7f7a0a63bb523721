import Synchronization

/// What happens on misuse that RealmSwift answers with an Objective-C exception, that is, by ending the program.
///
/// Replaceable so that tools can log first. A handler that returns is followed by the end of the program.
public enum RealmMisuse {
    private static let replaced = Mutex<(@Sendable (String) -> Void)?>(nil)

    /// Calls the handler with the reason before the program ends.
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

/// Ends the program because of an error of the programmer.
func throwRealmException(_ reason: String, file: StaticString = #fileID, line: UInt = #line) -> Never {
    RealmMisuse.report(reason)
    fatalError(reason, file: file, line: line)
}
