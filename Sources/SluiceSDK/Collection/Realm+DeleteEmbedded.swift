extension Realm {
    /// Deletes the embedded objects of results and clears them in their owners. Needs a write transaction.
    public func delete<Element: EmbeddedObject>(_ objects: Results<Element>) { for object in Array(objects) { core.delete(object) } }

    /// Deletes the embedded objects of a list. Needs a write transaction.
    public func delete<Element: EmbeddedObject>(_ objects: List<Element>) { objects.removeAll() }

    /// Deletes the embedded objects of a map with their entries. Needs a write transaction.
    public func delete<Key, Element: EmbeddedObject>(_ map: Map<Key, Element?>) { map.removeAll() }
}
