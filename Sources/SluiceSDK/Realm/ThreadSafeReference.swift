import SluiceCore
import Synchronization

/// Carries an object or collection to another thread, queue or actor. `Realm.resolve` unpacks it once.
///
/// ```swift
/// let reference = ThreadSafeReference(to: person)
/// queue.async {
///     guard let person = try Realm().resolve(reference) else { return } // deleted
/// }
/// ```
public struct ThreadSafeReference<Confined: ThreadConfined>: Sendable {
    private final class Content: Sendable {
        let locator: Mutex<_Locator?>
        init(_ locator: _Locator) { self.locator = Mutex(locator) }
    }

    private let content: Content

    /// Creates a reference to a managed object or collection. Traps if it is unmanaged or invalidated.
    public init(to threadConfined: Confined) {
        if threadConfined.isInvalidated { throwRealmException("Cannot construct reference to invalidated object") }
        guard let locator = threadConfined._locator() else {
            throwRealmException("Cannot construct reference to unmanaged object, which can be passed across threads directly")
        }
        content = Content(locator)
    }

    /// `true` if the reference has been resolved. A second resolution traps.
    public var isInvalidated: Bool { content.locator.withLock { $0 == nil } }

    func resolve(in core: RealmCore) -> Confined? {
        // Taken under the lock, so that only one of several resolutions succeeds.
        let taken = content.locator.withLock { locator in
            defer { locator = nil }
            return locator
        }
        guard let taken else { throwRealmException("Can only resolve a thread safe reference once.") }
        return core.find(taken) as? Confined
    }
}

extension Realm {
    /// Returns the referenced object or collection in this Realm; nil if it has been deleted.
    ///
    /// A Realm with an older snapshot than the reference advances first. Traps if the reference has been resolved before.
    public func resolve<Confined: ThreadConfined>(_ reference: ThreadSafeReference<Confined>) -> Confined? {
        reference.resolve(in: core)
    }
}

/// A variable for an object or collection that any thread may read and set. Each thread receives it in a Realm of its own.
///
/// ```swift
/// @ThreadSafe var person = realm.objects(Person.self).first
/// queue.async { print(person?.name ?? "deleted") }
/// ```
/// Reading opens the Realm for the current thread, so it must not be used in asynchronous functions of actors.
// Sendable because: the content is under the lock, and locators may be used on any thread.
@propertyWrapper
public final class ThreadSafe<T: ThreadConfined>: @unchecked Sendable {
    private struct Held {
        var file: OpenFile
        var configuration: Realm.Configuration
        var locator: _Locator
    }

    private let held = Mutex<Held?>(nil)

    /// Creates a variable with a managed value or nil. Traps if the value is unmanaged or invalidated.
    public init(wrappedValue: T?) { held.withLock { $0 = ThreadSafe.hold(wrappedValue) } }

    /// The value in a Realm of the current thread; nil if it has been deleted or the file cannot be opened.
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
