/// RealmSwift's older declaration of an optional number or Boolean. The compiler rejects it and shows the replacement.
@available(*, unavailable, message: "Declare '@Persisted var name: Value?' instead of 'let name = RealmOptional<Value>()'.")
public final class RealmOptional<Value> {
    public var value: Value?
    public init(_ value: Value? = nil) { self.value = value }
}

/// RealmSwift's older declaration of an optional or mixed value. The compiler rejects it and shows the replacement.
@available(*, unavailable, message: "Declare '@Persisted var name: Value' instead of 'let name = RealmProperty<Value>()'.")
public final class RealmProperty<Value> {
    // The initializer of older apps, so that the compiler shows the message above instead of a missing argument.
    public init() {}
    public var value: Value {
        get { throwRealmException("A property is declared as RealmProperty. Write: @Persisted var name: \(Value.self)") }
        set { throwRealmException("A property is declared as RealmProperty. Write: @Persisted var name: \(Value.self)") }
    }
}
