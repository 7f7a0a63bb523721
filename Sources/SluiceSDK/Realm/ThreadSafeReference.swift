import SluiceCore
import Synchronization

/// Carries an object or a collection from where its Realm lives to another place; it is unpacked once, with `Realm.resolve`.
///
/// ```swift
/// let reference = ThreadSafeReference(to: person)
/// queue.async {
///     guard let person = try Realm().resolve(reference) else { return } // deleted meanwhile
/// }
/// ```
public struct ThreadSafeReference<Confined: ThreadConfined>: Sendable {
    private final class Content: Sendable {
        let locator: Mutex<_Locator?>
        init(_ locator: _Locator) { self.locator = Mutex(locator) }
    }

    private let content: Content

    /// A reference to a managed object or collection; anything else is misuse, which ends the program.
    public init(to threadConfined: Confined) {
        if threadConfined.isInvalidated { throwRealmException("Cannot construct reference to invalidated object") }
        guard let locator = threadConfined._locator() else {
            throwRealmException("Cannot construct reference to unmanaged object, which can be passed across threads directly")
        }
        content = Content(locator)
    }

    /// Whether the reference has been resolved: it cannot be a second time.
    public var isInvalidated: Bool { content.locator.withLock { $0 == nil } }

    func resolve(in core: RealmCore) -> Confined? {
        let taken = content.locator.withLock { locator in
            defer { locator = nil }
            return locator
        }
        guard let taken else { throwRealmException("Can only resolve a thread safe reference once.") }
        return core.find(taken) as? Confined
    }
}

extension RealmCore {
    /// What a locator says, at a state that is not older than where it was got.
    func find(_ locator: _Locator) -> Any? {
        scheduler.verify()
        guard locator.path == file.path else {
            throwRealmException("Cannot resolve thread safe reference in Realm with different configuration than the source Realm.")
        }
        if !isFrozen, !isWriting, state.version < locator.version { refresh() }
        return locator.find(self)
    }
}

extension Realm {
    /// What a reference stands for, in this Realm; nil when it has been deleted meanwhile.
    ///
    /// A Realm that is older than where the reference was made moves on first.
    public func resolve<Confined: ThreadConfined>(_ reference: ThreadSafeReference<Confined>) -> Confined? {
        reference.resolve(in: core)
    }
}

/// A variable that holds an object or collection and can be read and set from any thread; each gets it in a Realm of its own.
///
/// ```swift
/// @ThreadSafe var person = realm.objects(Person.self).first
/// queue.async { print(person?.name ?? "deleted") }
/// ```
/// It opens the Realm where it is read, so it is not for asynchronous functions of actors.
// Sendable because: what it holds is under the lock, and locators are for any thread.
@propertyWrapper
public final class ThreadSafe<T: ThreadConfined>: @unchecked Sendable {
    private struct Held {
        var file: OpenFile
        var configuration: Realm.Configuration
        var locator: _Locator
    }

    private let held = Mutex<Held?>(nil)

    /// A variable with a value that a Realm manages, or nil.
    public init(wrappedValue: T?) { held.withLock { $0 = ThreadSafe.hold(wrappedValue) } }

    /// The value where it is asked for; nil when it has been deleted.
    public var wrappedValue: T? {
        get {
            guard let held = held.withLock({ $0 }) else { return nil }
            guard let core = try? held.file.core(held.configuration, scheduler: .current) else { return nil }
            return core.find(held.locator) as? T
        }
        set {
            let new = ThreadSafe.hold(newValue)
            held.withLock { $0 = new }
        }
    }

    private static func hold(_ value: T?) -> Held? {
        guard let value else { return nil }
        if value.isInvalidated { throwRealmException("Cannot construct reference to invalidated object") }
        guard let core = value.realm?.core, let locator = value._locator() else {
            throwRealmException("Only managed objects may be wrapped as thread safe.")
        }
        return Held(file: core.file, configuration: core.configuration, locator: locator)
    }
}
