extension Realm {
    /// Deletes the embedded objects of results: their owners have them no more.
    public func delete<Element: EmbeddedObject>(_ objects: Results<Element>) { for object in Array(objects) { core.delete(object) } }

    /// Deletes the embedded objects of a list.
    public func delete<Element: EmbeddedObject>(_ objects: List<Element>) { objects.removeAll() }

    /// Deletes the embedded objects of a map, entries included.
    public func delete<Key, Element: EmbeddedObject>(_ map: Map<Key, Element?>) { map.removeAll() }
}
