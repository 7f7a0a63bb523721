/// A type-erased collection: `Results`, `List`, `MutableSet` or `LinkingObjects`.
public struct AnyRealmCollection<Element: RealmCollectionValue>: RealmCollection {
    private let base: any RealmCollection<Element>

    private init(existing base: any RealmCollection<Element>) { self.base = base }

    public init<C: RealmCollection>(_ base: C) where C.Element == Element { self.base = (base as? AnyRealmCollection)?.base ?? base }

    public var realm: Realm? { base.realm }
    public var isInvalidated: Bool { base.isInvalidated }
    public var _managedResults: Results<Element>? { base._managedResults }

    public func _locator() -> _Locator? {
        guard let core = base.realm?.core, let locator = base._locator() else { return nil }
        return _Locator(core) { (locator.find($0) as? any RealmCollection<Element>).map { AnyRealmCollection(existing: $0) } }
    }

    public var startIndex: Int { 0 }
    public var endIndex: Int { base.count }
    public subscript(position: Int) -> Element { base[position] }

    public func makeIterator() -> RLMIterator<Element> {
        var rest = Array(base)[...]
        return RLMIterator { rest.popFirst() }
    }

    public func _copyToContiguousArray() -> ContiguousArray<Element> { base._copyToContiguousArray() }

    public func index(of object: Element) -> Int? { base.index(of: object) }

    public static func == (lhs: AnyRealmCollection, rhs: AnyRealmCollection) -> Bool { lhs.elementsEqual(rhs) }
    public var description: String { base.description }
}

@available(*, unavailable)
extension AnyRealmCollection: Sendable {}
