/// The content of a `@Persisted` wrapper, with one layout for all types.
/// Creating, adding and binding objects then needs no generic code, which would request type metadata at each step.
///
/// Public because inlined accessors refer to it; not for apps.
@frozen public enum _HeldValue {
    /// No value yet: the default of the type.
    case unset
    /// A number, a text, a raw value or nil, in stored form.
    case scalar(_StoredValue)
    /// Any other value, in a `_Holder`.
    case object(AnyObject)
    /// The row of a managed object, for code that has the wrapper without its object. The object keeps the row alive.
    case managed(Unmanaged<_RowCache>)
}

/// A box for a value that is not held as a scalar.
public final class _Holder<Value> {
    @usableFromInline let value: Value
    @inlinable init(_ value: Value) { self.value = value }
}

/// The storage of a `@Persisted` wrapper of any type.
@frozen public struct _Wrapped {
    @usableFromInline var slot: Int32 = -1
    @usableFromInline let flags: _PropertyFlags
    @usableFromInline var held: _HeldValue

    @inlinable init(_ held: _HeldValue, _ flags: _PropertyFlags) {
        self.held = held
        self.flags = flags
    }

    /// Becomes the wrapper of a slot of a managed object. Returns the previous content; nil for none.
    mutating func become(slot: Int32, _ managed: _HeldValue) -> _HeldValue? {
        self.slot = slot
        guard case .unset = held else {
            defer { held = managed }
            return held
        }
        // An unset value, as in every new accessor, needs no release; checking for one costs more than the rest.
        withUnsafeMutablePointer(to: &held) { $0.initialize(to: managed) }
        return nil
    }
}

/// The declared attributes of a wrapper.
@frozen public struct _PropertyFlags: OptionSet, Sendable {
    public let rawValue: UInt8
    @inlinable public init(rawValue: UInt8) { self.rawValue = rawValue }
    @inlinable static var primaryKey: _PropertyFlags { _PropertyFlags(rawValue: 1) }
    @inlinable static var indexed: _PropertyFlags { _PropertyFlags(rawValue: 2) }
}

extension _Persistable {
    /// Holds the value in a box, which suits most types.
    @inlinable public static func _hold(_ value: Self) -> _HeldValue { .object(_Holder(value)) }
    @inlinable public static func _value(of held: _HeldValue) -> Self {
        if case .object(let holder) = held { return unsafeDowncast(holder, to: _Holder<Self>.self).value }
        return _default()
    }
}

extension Bool {
    @inlinable public static func _hold(_ value: Bool) -> _HeldValue { .scalar(.bool(value)) }
    @inlinable public static func _value(of held: _HeldValue) -> Bool {
        if case .scalar(.bool(let value)) = held { return value }
        return false
    }
}

extension _PersistableInteger {
    @inlinable public static func _hold(_ value: Self) -> _HeldValue { .scalar(.int(Int64(value))) }
    @inlinable public static func _value(of held: _HeldValue) -> Self {
        if case .scalar(.int(let value)) = held { return Self(truncatingIfNeeded: value) }
        return 0
    }
}

extension Float {
    @inlinable public static func _hold(_ value: Float) -> _HeldValue { .scalar(.float(value)) }
    @inlinable public static func _value(of held: _HeldValue) -> Float {
        if case .scalar(.float(let value)) = held { return value }
        return 0
    }
}

extension Double {
    @inlinable public static func _hold(_ value: Double) -> _HeldValue { .scalar(.double(value)) }
    @inlinable public static func _value(of held: _HeldValue) -> Double {
        if case .scalar(.double(let value)) = held { return value }
        return 0
    }
}

extension String {
    @inlinable public static func _hold(_ value: String) -> _HeldValue { .scalar(.string(value)) }
    @inlinable public static func _value(of held: _HeldValue) -> String {
        if case .scalar(.string(let value)) = held { return value }
        return ""
    }
}

extension PersistableEnum {
    @inlinable public static func _hold(_ value: Self) -> _HeldValue { RawValue._hold(value.rawValue) }
    @inlinable public static func _value(of held: _HeldValue) -> Self {
        Self(rawValue: RawValue._value(of: held)) ?? _default()
    }
}

extension Optional where Wrapped: _OptionalPersistable {
    @inlinable public static func _hold(_ value: Wrapped?) -> _HeldValue { value.map { Wrapped._hold($0) } ?? .scalar(.null) }
    @inlinable public static func _value(of held: _HeldValue) -> Wrapped? {
        if case .scalar(.null) = held { return nil }
        return Wrapped._value(of: held)
    }
}
