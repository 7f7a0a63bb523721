public import Foundation

// Names that apps' generic code uses in constraints.

/// A type that a property or an element of a collection can have.
public typealias _HasPersistedType = _Persistable

/// An optional of any type.
public protocol OptionalProtocol {
    associatedtype Wrapped
}
extension Optional: OptionalProtocol {}

/// A type by whose values collections can be sorted.
public protocol SortableType: _Persistable {}
extension Bool: SortableType {}
extension Int: SortableType {}
extension Int8: SortableType {}
extension Int16: SortableType {}
extension Int32: SortableType {}
extension Int64: SortableType {}
extension Float: SortableType {}
extension Double: SortableType {}
extension Decimal128: SortableType {}
extension String: SortableType {}
extension Data: SortableType {}
extension Date: SortableType {}
extension UUID: SortableType {}
extension ObjectId: SortableType {}
extension AnyRealmValue: SortableType {}
extension Optional: SortableType where Wrapped: _OptionalPersistable & SortableType {}
