"""Texts and their vectors → topics: what a collection is about, in words and typical documents.

bag, topic_words      the words of each document, nouns only
reduce                directions in which the vectors differ
groups                which documents belong together: neighbour_graph + modularity, kmeans, HDBSCAN; anchors: seed words and labels
prototypes, outliers  a function from a vector to a topic; what the model says of its own documents is this function's answer
class_tfidf, word_choice, coherence, describe     words, names and documents of each topic
fitting               all of these in order
model                 what comes out, and is asked
change, update        merge, split, fewer topics, fewer outliers, more documents
ask, trends, hierarchy   topics of a query, of new texts, over time, per class, as a tree
saving                JSON and safetensors, with checksums
"""
